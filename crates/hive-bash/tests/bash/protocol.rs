//! The bridge on real standard input and output, and the daemon's socket.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::bench::{Bench, PATIENCE, terminate};

#[tokio::test]
async fn the_bridge_is_found_and_shaken_hands_with() {
    let bench = Bench::alone().await;
    let mut bash = bench.silent_bridge();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = bash.ask("server/discover", json!({"_meta": meta})).await;
    assert_eq!(found["result"]["capabilities"], json!({"tools": {}}));
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    });
    let answer = bash.ask("initialize", hello).await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "bash");
    let tools = bash.ask("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["run", "status"]);
}

/// An engine ends its servers with a signal, while their input is still open.
#[tokio::test]
async fn the_bridge_ends_at_a_signal_though_a_call_waits() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let args = json!({"cmd": "echo $$ > shell; sleep 1000", "wait_seconds": 30});
    bash.request("tools/call", json!({"name": "run", "arguments": args}))
        .await;
    bench.pid_in("shell").await;
    terminate(&bash.process);
    let ended = tokio::time::timeout(PATIENCE, bash.process.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}

#[tokio::test]
async fn the_bridge_ends_when_its_input_does() {
    let bench = Bench::alone().await;
    let bridge = env!("CARGO_BIN_EXE_hive-bash-mcp");
    let mut process = bench
        .command(bridge)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ended = tokio::time::timeout(PATIENCE, process.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}

#[tokio::test]
async fn b5_a_line_that_is_too_long_is_answered_and_ends_the_connection() {
    let bench = Bench::alone().await;
    let stream = tokio::net::UnixStream::connect(bench.socket()).await;
    let (mut read, mut write) = stream.unwrap().into_split();
    // More than the socket holds: the peer goes on writing when it is refused.
    let flood = "x".repeat(8 * 1024 * 1024);
    let writing = async { write.write_all(flood.as_bytes()).await.unwrap() };
    let reading = async {
        let mut seen = Vec::new();
        read.read_to_end(&mut seen).await.unwrap();
        let seen: Value = serde_json::from_slice(&seen).unwrap();
        assert_eq!(seen["ok"], false);
        assert_eq!(seen["error"]["code"], "line_too_long", "{seen}");
        assert!(seen["error"]["hint"].as_str().unwrap().contains("file"));
    };
    let both = async { tokio::join!(writing, reading) };
    tokio::time::timeout(PATIENCE, both).await.unwrap();
    // Others are served.
    let mut bash = bench.bridge().await;
    let tools = bash.ask("tools/list", json!({})).await;
    assert!(tools["result"]["tools"].is_array(), "{tools}");
}

#[tokio::test]
async fn b5_the_socket_is_its_owners_alone_and_bears_rubbish() {
    let bench = Bench::alone().await;
    let mode = fs::metadata(bench.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = tokio::net::UnixStream::connect(bench.socket())
        .await
        .unwrap();
    stream
        .write_all(b"rubbish\n{\"cmd\":\"fly\"}\n{\"cmd\":\"run\"}\n")
        .await
        .unwrap();
    stream
        .write_all(b"{\"cmd\":\"status\",\"task\":7,\"id\":1}\n")
        .await
        .unwrap();
    let (mut seen, mut codes) = (Vec::new(), Vec::new());
    while codes.len() < 4 {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
        codes = seen
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
            .map(|answer| answer["error"]["code"].as_str().unwrap().to_owned())
            .collect();
    }
    codes.sort();
    assert_eq!(
        codes,
        ["bad_request", "bad_request", "not_found", "unknown_command"]
    );
}

#[tokio::test]
async fn a_second_daemon_on_the_same_tasks_is_refused() {
    let bench = Bench::alone().await;
    let daemon = env!("CARGO_BIN_EXE_hive-bash-daemon");
    let second = bench.command(daemon).output().await.unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("another hive-bash-daemon"), "{said}");
    // And the first still answers.
    let mut bash = bench.bridge().await;
    assert_eq!(bash.finish("echo hi").await["stdout"], "hi\n");
}
