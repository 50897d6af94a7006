//! The port: health for everybody, metrics for the operator, nothing for other hosts.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

use hive_testkit::hive::TestHive;
use serde_json::json;

use crate::peer::{Doors, PATIENCE, hive, hive_with, ok};

/// Where the hive listens, as `127.0.0.1:PORT`.
pub(crate) fn address(hive: &TestHive) -> String {
    let info = ok(hive.operator().ask(&json!({"cmd":"info"})));
    let url = info["dashboard"].as_str().unwrap().to_owned();
    url.strip_prefix("http://").unwrap().to_owned()
}

/// Says exactly this, and hears everything that comes.
pub(crate) fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    String::from_utf8(reply).unwrap()
}

pub(crate) fn get(address: &str, path: &str, headers: &[&str]) -> String {
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    exchange(
        address,
        &format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"),
    )
}

pub(crate) fn status(reply: &str) -> u16 {
    let code = reply.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or_else(|| panic!("no status in {reply:?}"))
}

pub(crate) fn token(hive: &TestHive) -> String {
    let token = fs::read_to_string(hive.root().join("state/operator-token")).unwrap();
    token.trim().to_owned()
}

/// What the operator is told by `/metrics`.
pub(crate) fn metrics(hive: &TestHive) -> String {
    let (address, token) = (address(hive), token(hive));
    let (host, bearer) = (
        format!("Host: {address}"),
        format!("Authorization: Bearer {token}"),
    );
    let reply = get(&address, "/metrics", &[&host, &bearer]);
    assert_eq!(status(&reply), 200, "{reply}");
    reply
}

#[tokio::test]
async fn http_health_is_open_and_holds_no_data() {
    let hive = hive(&["ada"]).await;
    let address = address(&hive);
    let port = address.rsplit(':').next().unwrap();
    for host in [
        address.clone(),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
    ] {
        let reply = get(&address, "/healthz", &[&format!("Host: {host}")]);
        assert_eq!(status(&reply), 200, "{host}: {reply}");
        assert!(reply.ends_with("\r\n\r\nok\n"), "{reply}");
    }
}

#[tokio::test]
async fn http_metrics_need_the_operators_token() {
    let hive = hive(&["ada"]).await;
    let (address, token) = (address(&hive), token(&hive));
    let host = format!("Host: {address}");
    for bad in [
        "X-Nothing: 1".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer ".to_owned(),
        format!("Authorization: Bearer {}", &token[1..]),
        format!("Authorization: Bearer {token}0"),
        format!("Authorization: Bearer {}", token.to_uppercase()),
        format!("Authorization: Basic {token}"),
        format!("Cookie: token={token}"),
    ] {
        let reply = get(&address, "/metrics", &[&host, &bad]);
        assert_eq!(status(&reply), 401, "{bad}");
        assert!(!reply.contains("hive_"), "{bad}: {reply}");
    }
    let in_url = get(&address, &format!("/metrics?token={token}"), &[&host]);
    assert_eq!(status(&in_url), 401);
    assert!(metrics(&hive).contains("# EOF"), "OpenMetrics");
}

#[tokio::test]
async fn http_another_host_is_refused_on_every_route() {
    let hive = hive(&["ada"]).await;
    let (address, bearer) = (
        address(&hive),
        format!("Authorization: Bearer {}", token(&hive)),
    );
    let port = address.rsplit(':').next().unwrap().to_owned();
    let own = format!("Host: {address}");
    let foreign = [
        vec!["Host: evil.test".to_owned()],
        vec![format!("Host: evil.test:{port}")],
        vec![format!("Host: localhost.evil.test:{port}")],
        vec![format!("Host: evil.test@{address}")],
        vec!["Host: localhost:1".to_owned()],
        vec!["Host: ".to_owned()],
        vec![],
        vec![own.clone(), "Host: evil.test".to_owned()],
        vec![own.clone(), own.clone()],
        vec![
            "Host: evil.test".to_owned(),
            format!("X-Forwarded-Host: {address}"),
        ],
    ];
    for path in [
        "/healthz",
        "/metrics",
        "/",
        "/api/state",
        "/nothing/here",
        "/%2e%2e/healthz",
    ] {
        for hosts in &foreign {
            let headers: Vec<&str> = hosts.iter().chain([&bearer]).map(String::as_str).collect();
            let reply = get(&address, path, &headers);
            assert!(
                [400, 421].contains(&status(&reply)),
                "{path} {hosts:?}: {reply}"
            );
            assert!(
                !reply.contains("Access-Control"),
                "{path} {hosts:?}: {reply}"
            );
        }
        let evil = get(&address, path, &["Host: evil.test", &bearer]);
        assert_eq!(status(&evil), 421, "{path}: {evil}");
    }
    let absolute = format!(
        "GET http://evil.test/metrics HTTP/1.1\r\n{own}\r\n{bearer}\r\nConnection: close\r\n\r\n"
    );
    let reply = exchange(&address, &absolute);
    assert_ne!(
        status(&reply),
        200,
        "a foreign name in the request line: {reply}"
    );
}

#[tokio::test]
async fn http_further_names_are_those_of_the_config() {
    let hive = hive_with("[dashboard]\nhosts = [\"hive.example\"]\n", &[]).await;
    let address = address(&hive);
    let port = address.rsplit(':').next().unwrap();
    for (host, expected) in [
        ("hive.example".to_owned(), 200),
        (format!("hive.example:{port}"), 200),
        ("hive.example:1".to_owned(), 421),
        ("x.hive.example".to_owned(), 421),
    ] {
        let reply = get(&address, "/healthz", &[&format!("Host: {host}")]);
        assert_eq!(status(&reply), expected, "{host}");
    }
}

#[tokio::test]
async fn http_unknown_routes_and_methods_change_nothing() {
    let hive = hive(&["ada"]).await;
    let address = address(&hive);
    let host = format!("Host: {address}");
    let bearer = format!("Authorization: Bearer {}", token(&hive));
    assert_eq!(
        status(&get(&address, "/nothing", &[&host])),
        401,
        "denied by default"
    );
    assert_eq!(status(&get(&address, "/nothing", &[&host, &bearer])), 404);
    let post = format!(
        "POST /healthz HTTP/1.1\r\n{host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(status(&exchange(&address, &post)), 405);
}

#[tokio::test]
async fn http_an_unfinished_request_does_not_hold_up_the_drain() {
    let mut hive = hive(&[]).await;
    let address = address(&hive);
    let mut unfinished = TcpStream::connect(&address).unwrap();
    unfinished
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: ")
        .unwrap();
    let idle = TcpStream::connect(&address).unwrap();
    hive.terminate().await.unwrap();
    drop((unfinished, idle));
}
