//! A recorded model, played again.

use std::{path::Path, process::Command};

use hive_rehearsal::Rehearsal;
use serde_json::{Value, json};

use super::{
    client::{Answer, post, prompt, request, start},
    recording::{entries, spawn},
};

const PATH: &str = "/v1/messages?beta=true";

/// Stands for the real model.
const REAL: &str = r#"
[[rule]]
when.body = 'one'
answer = { thinking = 'hm', text = 'first {{"{{"}}', tools = [{ name = 'Read', input = { n = 1 } }] }

[[rule]]
when.body = 'two'
fault = { kind = 'rate_limit', retry_after_secs = 9 }

[[rule]]
answer.text = 'second'
"#;

fn asked() -> Vec<Value> {
    [
        ("one", true),
        ("two", true),
        ("three", false),
        ("four", true),
    ]
    .map(|(text, is_streamed)| {
        let mut body = prompt(text);
        body["stream"] = json!(is_streamed);
        body["thinking"] = json!({"type": "adaptive"});
        body
    })
    .into()
}

/// Asks the real model through the recording proxy.
async fn record(real: &Rehearsal, asked: &[Value], out: &Path) -> Vec<Answer> {
    let out = out.to_str().unwrap();
    let (_proxy, ready) = spawn(&["record", "--upstream", &real.url(), "--out", out]);
    let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
    let headers = "x-api-key: sk-ant-secret-key-1\r\nanthropic-version: 2023-06-01\r\n\
                   accept-encoding: gzip\r\n";
    let mut answers = Vec::new();
    for body in asked {
        let answer = request(port, "POST", PATH, headers, &body.to_string()).await;
        answers.push(answer.unwrap());
    }
    answers
}

#[tokio::test]
async fn a_recorded_model_can_be_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("real.jsonl");
    let asked = asked();
    let real = start(REAL).await;
    let then = record(&real, &asked, &out).await;
    let statuses: Vec<u16> = then.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 429, 200, 200]);
    let upstream_saw = real.requests();
    assert_eq!(upstream_saw.len(), 4);
    assert!(!upstream_saw[0].headers.contains_key("accept-encoding"));
    real.stop().await;
    assert!(
        !std::fs::read_to_string(&out)
            .unwrap()
            .contains("sk-ant-secret")
    );
    let is_complete = |entry: &hive_rehearsal::recording::Entry| {
        entry
            .response
            .as_ref()
            .is_some_and(|response| response.is_complete)
    };
    assert!(entries(&out).iter().all(is_complete));

    let made = Command::new(env!("CARGO_BIN_EXE_hive-rehearsal"))
        .arg("replay-scenario")
        .arg(&out)
        .output()
        .unwrap();
    let replayed = start(&String::from_utf8(made.stdout).unwrap()).await;
    // In another order, as agents come.
    for at in [3, 0, 2, 1] {
        let now = post(&replayed, PATH, &asked[at]).await;
        assert_same(&now, &then[at]);
    }
    replayed.stop().await;
}

/// The same answer but for its ids.
fn assert_same(now: &Answer, then: &Answer) {
    assert_eq!(now.status, then.status);
    assert_eq!(
        now.headers.get("retry-after"),
        then.headers.get("retry-after")
    );
    if now.headers["content-type"].starts_with("text/event-stream") {
        assert_eq!(spoken(&now.events()), spoken(&then.events()));
        return;
    }
    let (now, then) = (now.json(), then.json());
    for key in ["content", "error", "usage"] {
        assert_eq!(now[key], then[key], "{key}");
    }
}

/// What was said in a stream.
fn spoken(events: &[(String, Value)]) -> Vec<String> {
    ["thinking", "text", "partial_json", "stop_reason"]
        .map(|key| {
            let parts = events
                .iter()
                .filter_map(|(_, data)| data["delta"][key].as_str());
            parts.collect()
        })
        .into()
}
