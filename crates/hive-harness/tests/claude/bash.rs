//! The background shell: commands that end within a turn, commands that do not, and the plug pulled
//! while one runs.

use std::fs;

use hive_testkit::waiting::until;
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Stage, processes_of};

/// A model that starts a command which never ends by itself.
const ENDLESS: &str = r#"
    [[rule]]
    when = { body = "begin", step = 0 }
    answer.tools = [{ name = "mcp__bash__run", input = { cmd = "sleep 1000000", wait_seconds = 0 } }]
    [[rule]]
    answer.text = "ok"
"#;

/// An agent with a background shell.
async fn with_shell(scenario: &str) -> Option<Stage> {
    let stage = Stage::set(scenario).await?;
    let [daemon, bridge] = hive_testkit::bash::programs().unwrap();
    let mut stage = stage
        .with("HIVE_BASH_DAEMON", daemon.to_str().unwrap())
        .with("HIVE_BASH_MCP", bridge.to_str().unwrap());
    stage.start();
    Some(stage)
}

/// Waits until a turn that this sender caused has ended, and returns its prompt's body.
async fn turn_from(stage: &mut Stage, from: &str) -> String {
    let started = stage.event("turn_start", |data| data["from"] == from).await;
    let turn = started["turn"].clone();
    let ended = stage.event("turn_end", |data| data["turn"] == turn).await;
    assert_eq!(ended["outcome"], "ok");
    started["body"].as_str().unwrap().to_owned()
}

/// What the tools answered last in a request to the model.
fn told(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].to_string()
}

/// Waits until nothing that belongs to the agent runs.
async fn nothing_runs(stage: &Stage) {
    let state = stage.path("state");
    until("nothing runs", || processes_of(&state).is_empty()).await;
}

#[tokio::test]
async fn b1_b2_b5_commands_end_within_the_turn_or_wake_the_agent() {
    let scenario = r#"
        [[rule]]
        when = { body = "quick", step = 0 }
        answer.tools = [{ name = "mcp__bash__run", input = { cmd = "echo swift \"<$ANTHROPIC_API_KEY>\"; exit 3", wait_seconds = 30 } }]
        [[rule]]
        when = { body = "slow", step = 0 }
        answer.tools = [{ name = "mcp__bash__run", input = { cmd = "until test -e go; do sleep 0.02; done; echo arrived", wait_seconds = 0 } }]
        [[rule]]
        when = { from = "bash-task-2", step = 0 }
        answer.tools = [{ name = "mcp__bash__status", input = { id = 2 } }]
        [[rule]]
        answer.text = "ok"
    "#;
    let Some(mut stage) = with_shell(scenario).await else {
        return;
    };
    let quick = stage.send("quick").await;
    stage.acked(quick).await;
    let slow = stage.send("slow").await;
    stage.acked(slow).await;
    let asked = stage.model.requests();
    let quick = told(&asked[1].body);
    assert!(quick.contains("exit code 3"), "{quick}");
    assert!(quick.contains("swift <>"), "no key of the engine: {quick}");
    let slow = told(&asked[3].body);
    assert!(slow.contains("task started: id=2"), "{slow}");
    let loose_ends = fs::read_to_string(stage.path("harness/mcp-loose-ends/bash.json")).unwrap();
    assert!(loose_ends.contains("bash-task-2"), "{loose_ends}");
    assert!(
        !loose_ends.contains("bash-task-1"),
        "the end of the first was seen in its turn: {loose_ends}"
    );

    fs::write(stage.path("state/go"), "").unwrap();
    let body = turn_from(&mut stage, "bash-task-2").await;
    assert!(body.contains("exit code 0"), "{body}");
    assert!(body.contains("arrived"), "{body}");
    let asked = stage.model.requests();
    let status = told(&asked[5].body);
    assert!(
        status.contains("done") && status.contains("arrived"),
        "{status}"
    );
    assert_eq!(
        stage.outcomes(),
        ["ok"; 3],
        "one wake, for the second alone"
    );
}

#[tokio::test]
async fn b4_b5_a_killed_harness_takes_its_tasks_along_and_the_agent_is_told() {
    let Some(mut stage) = with_shell(ENDLESS).await else {
        return;
    };
    let id = stage.send("begin").await;
    stage.acked(id).await;
    assert!(!processes_of(&stage.path("state")).is_empty());
    stage.kill_harness().await;
    nothing_runs(&stage).await;
    stage.start();
    let body = turn_from(&mut stage, "bash-task-1").await;
    assert!(body.contains("interrupted"), "{body}");
}

#[tokio::test]
async fn b4_b5_a_harness_that_stops_ends_its_tasks_and_the_agent_is_told() {
    let Some(mut stage) = with_shell(ENDLESS).await else {
        return;
    };
    let id = stage.send("begin").await;
    stage.acked(id).await;
    stage.signal(Signal::TERM);
    assert_eq!(stage.ended().await, Some(0));
    assert_eq!(processes_of(&stage.path("state")), [0; 0]);
    stage.start();
    let body = turn_from(&mut stage, "bash-task-1").await;
    assert!(body.contains("interrupted"), "{body}");
}
