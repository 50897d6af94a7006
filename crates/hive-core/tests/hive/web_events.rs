//! Events as a stream: resumed where it broke off, gaps shown, nobody waited for.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    http::{address, token},
    peer::{Doors, PATIENCE, Peer, eventually, hive, hive_with, ok},
    web::{Page, hive_with_own_ports},
};

/// An open stream of server-sent events.
struct Stream {
    lines: BufReader<TcpStream>,
}

/// One event as it came.
#[derive(Debug)]
struct Sent {
    id: String,
    event: String,
    data: Value,
}

fn connect(page: &Page, path: &str, headers: &[&str]) -> TcpStream {
    let mut stream = TcpStream::connect(&page.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{headers}\r\n",
        page.address, page.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

impl Stream {
    fn open(page: &Page, path: &str, headers: &[&str]) -> Self {
        let mut lines = BufReader::new(connect(page, path, headers));
        let mut head = String::new();
        lines.read_line(&mut head).unwrap();
        assert!(head.contains(" 200 "), "{head}");
        Self { lines }
    }

    /// The next event with data; none when the stream ends.
    fn next(&mut self) -> Option<Sent> {
        let mut sent = Sent {
            id: String::new(),
            event: String::new(),
            data: Value::Null,
        };
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut sent.id);
            } else if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut sent.event);
            } else if let Some(data) = line.strip_prefix("data: ") {
                sent.data = serde_json::from_str(data).unwrap();
            } else if line.is_empty() && !sent.data.is_null() {
                return Some(sent);
            }
        }
    }

    /// The texts of the next notes, whatever comes between them.
    fn notes(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let sent = self.next().expect("the stream goes on");
            if sent.data["kind"] == "note" {
                texts.push(sent.data["data"]["text"].as_str().unwrap().to_owned());
            }
        }
        texts
    }
}

fn post(peer: &mut Peer, first: u64, texts: &[&str]) {
    let events: Vec<Value> = texts
        .iter()
        .zip(first..)
        .map(|(text, seq)| {
            json!({"seq":seq,"at":"2026-01-02T03:04:05Z","kind":"note","data":{"text":text}})
        })
        .collect();
    ok(peer.ask(&json!({"cmd":"post_events","epoch":"e","events":events})));
}

#[tokio::test]
async fn web_events_are_resumed_where_the_stream_broke_off() {
    let mut hive = hive_with_own_ports(&["ada", "bob"]).await;
    let page = Page::of_agent(&hive, "ada");
    let (mut ada, mut bob) = (hive.peer("ada"), hive.peer("bob"));
    post(&mut ada, 1, &["one"]);
    let mut stream = Stream::open(&page, "/api/events", &[]);
    assert_eq!(stream.notes(1), ["one"], "the past comes first");
    post(&mut bob, 1, &["not ada's"]);
    post(&mut ada, 2, &["two\n\ndata: forged\r\nid: 9-9"]);
    let sent = stream.next().unwrap();
    assert_eq!(sent.data["data"]["text"], "two\n\ndata: forged\r\nid: 9-9");
    assert_eq!(
        (sent.data["about"].as_str(), sent.event.as_str()),
        (Some("ada"), "")
    );
    drop(stream);

    post(&mut ada, 3, &["three"]);
    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    post(&mut hive.peer("ada"), 4, &["four"]);
    let last = format!("Last-Event-ID: {}", sent.id);
    let mut stream = Stream::open(&page, "/api/events?recent=0", &[&last]);
    let first = stream.next().unwrap();
    let first = if first.event == "gap" {
        // The numbers that a kill left unused are a gap to whoever resumes across it.
        stream.next().unwrap()
    } else {
        first
    };
    assert_eq!(first.data["data"]["text"], "three");
    assert_eq!(stream.notes(1), ["four"]);
}

#[tokio::test]
async fn web_events_of_another_log_begin_with_a_gap() {
    let hive = hive(&["ada"]).await;
    let page = Page::of_agent(&hive, "ada");
    post(&mut hive.peer("ada"), 1, &["one"]);
    for id in [
        "5-99",
        "garbage",
        "1-2-3",
        "\u{e9}",
        "99999999999999999999-1",
    ] {
        let last = format!("Last-Event-ID: {id}");
        let mut stream = Stream::open(&page, "/api/events", &[&last]);
        assert_eq!(stream.next().unwrap().event, "gap", "{id}");
        assert_eq!(stream.notes(1), ["one"], "{id}");
    }
}

#[tokio::test]
async fn web_events_of_everybody_are_the_dashboards() {
    let hive = hive(&["ada", "bob"]).await;
    let dashboard = Page {
        address: address(&hive),
        token: token(&hive),
    };
    let mut all = Stream::open(&dashboard, "/api/events?recent=0", &[]);
    let mut only_bob = Stream::open(&dashboard, "/api/agents/bob/events?recent=0", &[]);
    let position = dashboard.get("/api/state").1["position"]
        .as_str()
        .unwrap()
        .to_owned();
    post(&mut hive.peer("ada"), 1, &["ada's"]);
    post(&mut hive.peer("bob"), 1, &["bob's"]);
    assert_eq!(all.notes(2), ["ada's", "bob's"]);
    assert_eq!(only_bob.notes(1), ["bob's"]);
    let after = format!("/api/events?after={position}");
    let mut since = Stream::open(&dashboard, &after, &[]);
    assert_eq!(
        since.notes(2),
        ["ada's", "bob's"],
        "a snapshot leads on to what came after it"
    );
    assert_eq!(dashboard.get("/api/agents/zoe/events").0, 404);
}

#[tokio::test]
async fn web_events_end_with_the_session() {
    let hive = hive(&["ada"]).await;
    let page = Page::of_agent(&hive, "ada");
    let mut stream = Stream::open(&page, "/api/events?recent=0", &[]);
    assert_eq!(hive.cli(&["link", "ada", "--rotate"]).code, 0);
    post(&mut hive.peer("ada"), 1, &["a secret"]);
    assert!(
        stream.next().is_none(),
        "no event after the session has ended"
    );
}

#[tokio::test]
async fn web_events_wait_for_nobody_who_does_not_read() {
    let hive = hive_with("[limits]\nline_seconds = 1\n", &["ada"]).await;
    let page = Page::of_agent(&hive, "ada");
    let mut asleep = connect(&page, "/api/events?recent=0", &[]);
    let mut ada = hive.peer("ada");
    let large = "x".repeat(200_000);
    for round in 0..60 {
        post(&mut ada, round + 1, &[&large]);
    }
    let mut awake = Stream::open(&page, "/api/events?recent=0", &[]);
    post(&mut ada, 61, &["for those who read"]);
    assert_eq!(awake.notes(1), ["for those who read"]);
    // A connection that was dropped with data unread answers what is written with a reset.
    asleep
        .set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    eventually("the one who does not read is dropped", || {
        asleep.write_all(b"\r\n").is_err()
    });
}

#[tokio::test]
async fn web_events_are_no_reason_to_wait_at_the_end() {
    let mut hive = hive(&["ada"]).await;
    let page = Page::of_agent(&hive, "ada");
    let mut stream = Stream::open(&page, "/api/events?recent=0", &[]);
    hive.terminate().await.unwrap();
    assert!(stream.next().is_none());
}
