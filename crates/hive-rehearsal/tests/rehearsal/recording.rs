//! Recordings: what is written down, and what is made of it.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use hive_rehearsal::{Options, Rehearsal, Scenario, recording::Entry};
use serde_json::{Value, json};

use super::client::{post, post_streaming, prompt, request, start};

pub(crate) fn entries(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn what_the_model_saw_is_written_down_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seen.jsonl");
    let scenario = Scenario::parse("t", "[[rule]]\nname = 'hi'\nanswer.text = 'ok'").unwrap();
    let options = Options {
        record: Some(path.clone()),
        ..Options::default()
    };
    let model = Rehearsal::start_with(scenario, options).await.unwrap();
    let secret = "sk-ant-api03-abcdefghijklmnop";
    post(
        &model,
        "/v1/messages?key=hunter2secret",
        &prompt(&format!("my key is {secret}")),
    )
    .await;
    request(
        model.port(),
        "HEAD",
        "/api/hello",
        "cookie: session=abcdef\r\n",
        "",
    )
    .await
    .unwrap();
    let seen = model.requests();
    model.stop().await;

    let written = std::fs::read_to_string(&path).unwrap();
    for leaked in [
        secret,
        "dummy-key",
        "dummy-token",
        "hunter2secret",
        "session=abcdef",
    ] {
        assert!(!written.contains(leaked), "{leaked}: {written}");
        assert!(!format!("{seen:?}").contains(leaked), "{leaked}");
    }
    let entries = entries(&path);
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].call, entries[0].rule.as_deref()),
        (Some(1), Some("hi"))
    );
    assert_eq!(entries[0].body["model"], "claude-test");
    assert!(
        entries[0].body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .starts_with("my key is ***")
    );
    assert_eq!(
        (entries[1].method.as_str(), entries[1].call),
        ("HEAD", None)
    );
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

/// A running `hive-rehearsal`, killed at the end.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(crate) fn spawn(args: &[&str]) -> (Process, Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hive-rehearsal"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (Process(child), serde_json::from_str(&line).unwrap())
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_recorded_as_such() {
    let gone = start("").await;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("gone.jsonl");
    let (proxy, ready) = spawn(&[
        "record",
        "--upstream",
        &gone.url(),
        "--out",
        out.to_str().unwrap(),
    ]);
    gone.stop().await;
    let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
    let answer = request(port, "POST", "/v1/messages", "", &prompt("x").to_string())
        .await
        .unwrap();
    assert_eq!(answer.status, 502);
    drop(proxy);
    assert_eq!(entries(&out)[0].response.as_ref().unwrap().status, 0);
}

#[tokio::test]
async fn a_stream_that_breaks_upstream_is_recorded_as_incomplete() {
    let real = start("[[rule]]\nfault = 'cut'").await;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("cut.jsonl");
    let (proxy, ready) = spawn(&[
        "record",
        "--upstream",
        &real.url(),
        "--out",
        out.to_str().unwrap(),
    ]);
    let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
    let mut body = prompt("x");
    body["stream"] = json!(true);
    let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
    let answer = request(port, "POST", "/v1/messages", headers, &body.to_string())
        .await
        .unwrap();
    assert!(!answer.is_complete);
    drop(proxy);
    real.stop().await;
    assert!(!entries(&out)[0].response.as_ref().unwrap().is_complete);
    let again = start("[[rule]]\nfault = 'cut'").await;
    let cut = post_streaming(&again, "/v1/messages", &prompt("x")).await;
    assert_eq!(
        cut.body, answer.body,
        "the proxy changes nothing on the way"
    );
    again.stop().await;
}
