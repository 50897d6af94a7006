//! The built-in tour: what it does with which tools, and that it always ends.

use hive_rehearsal::Rehearsal;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::client::{post, start};

const ALL: &[&str] = &[
    "Read",
    "Write",
    "mcp__bash__run",
    "mcp__hyperhive__answer",
    "mcp__hyperhive__ask",
    "mcp__hyperhive__recv",
    "mcp__hyperhive__remind",
    "mcp__hyperhive__request_apply_commit",
    "mcp__hyperhive__request_spawn",
    "mcp__hyperhive__send",
    "mcp__hyperhive__set_status",
];

/// What a root agent is told of configurations.
const SYSTEM: &str = "Every agent's configuration is a git repository at `/agents/<name>/config`.";

/// A message as the harness hands it to an engine.
fn wake(from: &str, body: &str) -> String {
    format!(
        "Message 12 from {from}.\n\n----- message 12 begins · c0ffee -----\n{body}\n\
         ----- message 12 ends · c0ffee -----\n"
    )
}

async fn tour() -> Rehearsal {
    let text = hive_rehearsal::scenario::builtin::named("tour")
        .unwrap()
        .text;
    start(&text.replace("chunk_delay_ms = 15", "chunk_delay_ms = 0")).await
}

/// Plays an engine: runs the tools it is told to run until the model says its last words. Gives the
/// calls of each step and the last words.
async fn turn(model: &Rehearsal, prompt: &str, tools: &[&str]) -> (Vec<Vec<Value>>, String) {
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    let mut steps = Vec::new();
    loop {
        assert!(steps.len() < 5, "the turn does not end: {steps:#?}");
        let body = json!({
            "model": "m", "max_tokens": 10, "system": SYSTEM, "tools": tools, "messages": messages,
        });
        let answer = post(model, "/v1/messages", &body).await.json();
        let content = answer["content"].as_array().unwrap().clone();
        let calls: Vec<Value> = content
            .iter()
            .filter(|b| b["type"] == "tool_use")
            .cloned()
            .collect();
        if calls.is_empty() {
            assert_eq!(answer["stop_reason"], "end_turn");
            return (steps, content[0]["text"].as_str().unwrap().to_owned());
        }
        let results: Vec<Value> = calls.iter().map(|call| {
            json!({"type": "tool_result", "tool_use_id": call["id"], "content": format!("result of {}", call["name"])})
        }).collect();
        steps.push(calls);
        messages.push(json!({"role": "assistant", "content": content}));
        messages.push(json!({"role": "user", "content": results}));
    }
}

#[tokio::test]
async fn words_lead_to_tools() {
    let model = tour().await;
    #[rustfmt::skip]
    let table: &[(&str, &str, &[&str], &str, Value)] = &[
        ("operator", "Good morning!", &["set_status Write", "send"], "send", json!({"to": "operator", "in_reply_to": 12})),
        ("operator", "help", &["set_status send"], "send", json!({"to": "operator"})),
        ("ruth", "run uname -a", &["set_status run", "send"], "run", json!({"cmd": "uname -a", "wait_seconds": 10})),
        ("ruth", "please run `ls -l`", &["set_status run", "send"], "run", json!({"cmd": "ls -l"})),
        ("operator", "Remind me in 20 seconds to stretch", &["set_status remind", "send"], "remind", json!({"message": "For operator: stretch", "delay_seconds": 20})),
        ("operator", "remind me in an hour that tea is ready", &["set_status remind", "send"], "remind", json!({"message": "For operator: tea is ready", "delay_seconds": 3600})),
        ("operator", "ask me something", &["set_status ask", "send"], "ask", json!({"to": "operator"})),
        ("operator", "spawn bob", &["set_status request_spawn", "send"], "request_spawn", json!({"name": "bob", "reason": "operator asked me for it."})),
        ("operator", "configure bob: model = \"opus\"", &["set_status run", "request_apply_commit send"], "request_apply_commit", json!({"agent": "bob", "commit_ref": "main"})),
        ("operator", "remember that x = 1", &["set_status Write", "send"], "Write", json!({"content": "operator wants me to remember:\n\nx = 1\n"})),
        ("operator", "read notes/a.md", &["Read", "send"], "Read", json!({"file_path": "notes/a.md"})),
        ("operator", "tell bob hello there", &["send", "send"], "send", json!({"to": "bob", "body": "operator wants you to know: hello there"})),
        ("reminder", "For operator: stretch", &["send set_status"], "send", json!({"to": "operator"})),
        ("bash-task-3", "exit code 0", &["send"], "send", json!({"to": "operator"})),
        ("system", "you were restarted", &["set_status"], "set_status", json!({"text": "ready"})),
        ("system", r#"{"event":"question_asked","from":"bob","question":"q?","question_id":7}"#, &["answer"], "answer", json!({"question_id": 7})),
        ("system", r#"{"answer":"take a rest","event":"question_answered","question":"q?","question_id":7}"#, &["set_status send"], "set_status", json!({"text": "was told: take a rest"})),
    ];
    for (from, body, steps, tool, input) in table {
        let (found, last) = turn(&model, &wake(from, body), ALL).await;
        let short = |call: &Value| {
            let name = call["name"].as_str().unwrap();
            name.rsplit("__").next().unwrap().to_owned()
        };
        let names: Vec<String> = found
            .iter()
            .map(|calls| calls.iter().map(short).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(names, *steps, "{from}: {body}");
        assert!(!last.is_empty());
        let call = found
            .iter()
            .flatten()
            .find(|call| short(call) == *tool)
            .unwrap();
        for (key, value) in input.as_object().unwrap() {
            assert_eq!(call["input"][key], *value, "{from}: {body}: {call:#}");
        }
    }
    model.stop().await;
}

#[tokio::test]
async fn results_are_reported() {
    let model = tour().await;
    let (steps, _) = turn(&model, &wake("ruth", "run uname -a"), ALL).await;
    let report = steps[1][0]["input"]["body"].as_str().unwrap();
    assert!(
        report.contains("I ran `uname -a`") && report.contains("mcp__bash__run"),
        "{report}"
    );
    model.stop().await;
}

#[tokio::test]
async fn two_rehearsed_agents_do_not_keep_each_other_awake() {
    let model = tour().await;
    let mut mail = wake("ada", "hello bob");
    let mut sent = 0;
    while let Some(body) = sends(&turn(&model, &mail, ALL).await.0) {
        sent += 1;
        assert!(sent < 5, "still talking: {body}");
        mail = wake("bob", &body);
    }
    assert_eq!(sent, 1, "one answer, and then silence");
    model.stop().await;
}

fn sends(steps: &[Vec<Value>]) -> Option<String> {
    let mut calls = steps.iter().flatten();
    let call = calls.find(|call| call["name"] == "mcp__hyperhive__send")?;
    call["input"]["body"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn a_checkpoint_is_written_and_nothing_sent() {
    let model = tour().await;
    let prompt = "Checkpoint, from the hive itself. Your context is filling up.";
    let (steps, _) = turn(&model, prompt, ALL).await;
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0][0]["name"], "Write");
    model.stop().await;
}

#[tokio::test]
async fn without_tools_it_only_talks() {
    let model = tour().await;
    for prompt in [
        "hello".to_owned(),
        wake("operator", "run ls"),
        wake("system", "x"),
    ] {
        let (steps, last) = turn(&model, &prompt, &[]).await;
        assert!(steps.is_empty() && !last.is_empty(), "{prompt}");
    }
    model.stop().await;
}

#[test]
fn prop_every_turn_ends_whatever_is_said_and_offered() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let model = runtime.block_on(tour());
    let word = prop_oneof![
        Just("run".to_owned()),
        Just("remind me".to_owned()),
        Just("ask me".to_owned()),
        Just("(This model is rehearsed.)".to_owned()),
        Just("tell".to_owned()),
        "[ -~\u{e9}\n]{0,12}",
    ];
    let body = prop::collection::vec(word, 1..5).prop_map(|words| words.join(" "));
    let from = prop_oneof![
        Just("operator"),
        Just("system"),
        Just("self"),
        Just("reminder"),
        Just("bob")
    ];
    let tools = prop::sample::subsequence(ALL, 0..ALL.len());
    let config = ProptestConfig {
        cases: 64,
        ..ProptestConfig::default()
    };
    let run = |(from, body, tools): (&str, String, Vec<&str>)| {
        runtime.block_on(turn(&model, &wake(from, &body), &tools));
        Ok(())
    };
    proptest::test_runner::TestRunner::new(config)
        .run(&(from, body, tools), run)
        .unwrap();
    runtime.block_on(model.stop());
}
