//! A client that sees everything: every byte, and how a connection ends.

use std::{collections::BTreeMap, io, time::Duration};

use hive_rehearsal::{Rehearsal, Scenario};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A response, and how its connection ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    /// The body, put together from its chunks as far as they came.
    pub(crate) body: String,
    /// Whether the body came to its end.
    pub(crate) is_complete: bool,
    /// What ended the connection, when it was no orderly end.
    pub(crate) error: Option<io::ErrorKind>,
}

/// Starts a scenario.
pub(crate) async fn start(scenario: &str) -> Rehearsal {
    let scenario = Scenario::parse("test", scenario).unwrap();
    Rehearsal::start(scenario).await.unwrap()
}

/// A request to the Messages API with one prompt.
pub(crate) fn prompt(text: &str) -> Value {
    messages(&json!([{"role": "user", "content": text}]))
}

/// A request to the Messages API.
pub(crate) fn messages(messages: &Value) -> Value {
    json!({"model": "claude-test", "max_tokens": 1000, "messages": messages})
}

/// Posts JSON with credentials that either API takes.
pub(crate) async fn post(model: &Rehearsal, path: &str, body: &Value) -> Answer {
    let headers = "x-api-key: sk-ant-dummy-key\r\nauthorization: Bearer dummy-token\r\n\
                   anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n";
    request(model.port(), "POST", path, headers, &body.to_string())
        .await
        .unwrap()
}

/// Posts JSON and wants a stream.
pub(crate) async fn post_streaming(model: &Rehearsal, path: &str, body: &Value) -> Answer {
    let mut body = body.clone();
    body["stream"] = json!(true);
    post(model, path, &body).await
}

/// One request on a connection of its own.
pub(crate) async fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
         content-length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    // A server may answer without reading all of it.
    stream.write_all(body.as_bytes()).await.ok();
    read(stream).await
}

/// Reads a response until the connection ends.
pub(crate) async fn read(mut stream: TcpStream) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let mut error = None;
    loop {
        match stream.read_buf(&mut bytes).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(failed) => {
                error = Some(failed.kind());
                break;
            }
        }
    }
    if bytes.is_empty() {
        return Err(error.unwrap_or(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(parse(&bytes, error))
}

/// Reads until `needle` has come, and leaves the connection open.
pub(crate) async fn read_until(stream: &mut TcpStream, needle: &str) -> String {
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains(needle) {
        let reading = stream.read_buf(&mut bytes);
        let read = tokio::time::timeout(Duration::from_secs(30), reading).await;
        assert_ne!(
            read.unwrap().unwrap(),
            0,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
    String::from_utf8(bytes).unwrap()
}

fn parse(bytes: &[u8], error: Option<io::ErrorKind>) -> Answer {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let (body, is_complete) = match headers.get("content-length") {
        Some(length) => (
            rest.to_owned(),
            rest.len() == length.parse::<usize>().unwrap(),
        ),
        None => dechunk(rest),
    };
    Answer {
        status: status.parse().unwrap(),
        headers,
        body,
        is_complete,
        error,
    }
}

fn dechunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = after.get(..size) else {
            body.push_str(after);
            break;
        };
        body.push_str(chunk);
        rest = after[size..].trim_start_matches("\r\n");
    }
    (body, false)
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The events of a stream: their names, and their data as far as it is JSON.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        self.body
            .split_terminator("\n\n")
            .map(|event| {
                let line = |key: &str| {
                    let lines = event.lines().filter_map(|line| line.strip_prefix(key));
                    lines.collect::<String>()
                };
                let data = line("data: ");
                let data = serde_json::from_str(&data).unwrap_or(Value::String(data));
                (line("event: "), data)
            })
            .collect()
    }
}
