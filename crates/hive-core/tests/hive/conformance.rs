//! The MCP conformance suite on an agent's port: both sets of requirements, nothing expected to
//! fail. What it wants to find on a server is served by the mount of the agent's tools, behind its
//! token, in builds with the feature `mcp-fixtures`.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    process::Command,
    thread,
};

use hive_testkit::{
    hive::TestHive,
    mcp_tools::{self, said},
};
use serde_json::Value;

use crate::{peer::hive_with, web::Page};

/// The suite sends no token. This adds one to each request, and is not noticed otherwise: the
/// hive is told that it is also reached under this address.
struct Porter {
    address: String,
}

impl Porter {
    fn listen() -> (TcpListener, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (listener, Self { address })
    }

    /// Lets everybody in to `page`, as long as the test runs.
    fn serve(listener: TcpListener, page: Page) {
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), address) = (client, page.address.clone()) else {
                    return;
                };
                let token = page.token.clone();
                thread::spawn(move || carry(client, &address, &token));
            }
        });
    }
}

/// Carries one request: the connection is closed after it, so that there is one head to change.
fn carry(mut client: TcpStream, address: &str, token: &str) {
    let Some((head, rest)) = read_head(&mut client) else {
        return;
    };
    let kept = head.lines().filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("connection")
    });
    let mut head: String = kept.map(|line| format!("{line}\r\n")).collect();
    head += &format!("Authorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    let Ok(mut server) = TcpStream::connect(address) else {
        return;
    };
    if server.write_all(head.as_bytes()).is_err() || server.write_all(&rest).is_err() {
        return;
    }
    let (mut body, mut towards) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let upload = thread::spawn(move || copy(&mut body, &mut towards));
    copy(&mut server, &mut client);
    // Whoever hangs up ends both ways.
    client.shutdown(Shutdown::Both).ok();
    server.shutdown(Shutdown::Both).ok();
    upload.join().unwrap();
}

fn copy(from: &mut TcpStream, to: &mut TcpStream) {
    match std::io::copy(from, to) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        // A peer that has gone misses nothing.
        Err(_) => {
            from.shutdown(Shutdown::Both).ok();
        }
    }
}

fn read_head(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            bytes.truncate(end);
            return Some((String::from_utf8(bytes).ok()?, rest));
        }
        let count = client.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    }
}

/// A hive whose agent `ada` is reached without a token.
async fn open_hive() -> (TestHive, String) {
    let (listener, porter) = Porter::listen();
    let hosts = format!(
        "[dashboard]\nhosts = [\"{0}\", \"localhost:{1}\"]\n",
        porter.address,
        porter.address.rsplit(':').next().unwrap()
    );
    let hive = hive_with(&hosts, &["ada"]).await;
    Porter::serve(listener, Page::of_agent(&hive, "ada"));
    let url = format!("http://{}/mcp-fixtures", porter.address);
    (hive, url)
}

/// Runs the suite, with `home` for what it writes.
fn passes(mut suite: Command, home: &Path, url: &str, requirements: &str) {
    suite.args(["server", "--url", url, "--requirements", requirements]);
    suite.args(["--timeout", "120000"]);
    let output = suite.output().unwrap();
    assert!(
        output.status.success(),
        "{requirements}: {}\n{:#}",
        said(&output),
        failures(&home.join("results"))
    );
}

/// The checks that failed, by scenario.
fn failures(results: &Path) -> Value {
    let mut failures = serde_json::Map::new();
    for scenario in fs::read_dir(results).unwrap() {
        let scenario = scenario.unwrap();
        let checks = fs::read(scenario.path().join("checks.json")).unwrap();
        let mut checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        checks.retain(|check| check["status"] == "FAILURE");
        if !checks.is_empty() {
            let name = scenario.file_name().to_string_lossy().into_owned();
            failures.insert(name, checks.into());
        }
    }
    failures.into()
}

#[tokio::test]
async fn heavy_conformance_with_a_handshake() {
    let Some(tools) = mcp_tools::find() else {
        return;
    };
    let (hive, url) = open_hive().await;
    passes(
        tools.conformance(hive.root()),
        hive.root(),
        &url,
        "2025-11-25",
    );
}

#[tokio::test]
async fn heavy_conformance_without_a_handshake() {
    let Some(tools) = mcp_tools::find() else {
        return;
    };
    let (hive, url) = open_hive().await;
    passes(
        tools.conformance(hive.root()),
        hive.root(),
        &url,
        "2026-07-28",
    );
}
