//! Interruptions, signals and kills.

use hive_testkit::waiting::until;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Engine, Stage, contract};

contract!(
    interrupt_request,
    sigint,
    sigterm,
    killed_and_continued,
    interrupt_of_a_tool
);

const SLOW: &str = r#"
[[rule]]
when.body = "slow"
fault = "stall"
answer.text = "this never ends because the model stalls in the middle of it"
[[rule]]
answer.text = "back"
"#;

async fn interrupt_request(engine: Engine) {
    let stage = Stage::new(engine, SLOW).await;
    let flags = stage.flags(&["--input-format", "stream-json"]);
    let mut live = stage.open(&flags);
    live.say("slow", "aaaaaaaa-0000-4000-8000-000000000001")
        .await;
    stage.model.wait_for_requests(1).await.unwrap();
    live.send(
        json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}}),
    )
    .await;
    let result = live.until(|line| line["type"] == "result").await;
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    let has_receipt = |line: &serde_json::Value| {
        line["type"] == "control_response" && line["response"]["request_id"] == "r1"
    };
    if !live.lines.iter().any(has_receipt) {
        live.until(has_receipt).await;
    }
    live.say("again", "aaaaaaaa-0000-4000-8000-000000000002")
        .await;
    let result = live.until(|line| line["type"] == "result").await;
    assert_eq!(result["result"], "back");
    live.close_input();
    assert_eq!(live.end().await.code, Some(0));
}

async fn sigint(engine: Engine) {
    let stage = Stage::new(engine, SLOW).await;
    let mut live = stage.open(&stage.flags(&[]));
    live.write("slow").await;
    stage.model.wait_for_requests(1).await.unwrap();
    live.signal(Signal::INT);
    let run = live.end().await;
    assert_eq!(run.code, Some(0));
    // The real one sometimes goes without a word; ours never does.
    if stage.engine.is_native() || run.lines.iter().any(|line| line["type"] == "result") {
        assert_eq!(run.result()["subtype"], "error_during_execution");
        assert_eq!(run.result()["terminal_reason"], "aborted_streaming");
    }
}

async fn sigterm(engine: Engine) {
    let stage = Stage::new(engine, SLOW).await;
    let mut live = stage.open(&stage.flags(&[]));
    live.write("slow").await;
    stage.model.wait_for_requests(1).await.unwrap();
    live.signal(Signal::TERM);
    let run = live.end().await;
    assert_eq!(run.code, Some(143));
    if stage.engine.is_native() {
        assert_eq!(
            run.result()["is_error"],
            true,
            "ours says how the turn ended"
        );
    }
}

async fn killed_and_continued(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when = { body = "slow", step = 0 }
        answer.tools = [{ name = "Read", input = { file_path = "{{cwd}}/x" } }]
        [[rule]]
        when = { body = "slow", step = 1 }
        fault = "no_answer"
        [[rule]]
        answer.text = "back"
        "#,
    )
    .await;
    stage.write("x", "x");
    let mut live = stage.open(&stage.flags(&["--continue"]));
    live.write("slow").await;
    stage.model.wait_for_requests(2).await.unwrap();
    live.signal(Signal::KILL);
    live.end().await;
    let run = stage.turn("are you there", &["--continue"]).await;
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.result()["result"], "back");
    let body = serde_json::to_string(&stage.model.requests().last().unwrap().body).unwrap();
    assert!(
        body.contains("slow"),
        "the unanswered prompt stays in the history"
    );
}

async fn interrupt_of_a_tool(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.body = "wait"
        answer.tools = [{ name = "Bash", input = { command = "touch started; exec tail -f /dev/null", description = "waits" } }]
        [[rule]]
        answer.text = "back"
        "#,
    )
    .await;
    let flags = stage.flags(&["--input-format", "stream-json", "--allowedTools", "Bash"]);
    let mut live = stage.open(&flags);
    live.say("wait", "aaaaaaaa-0000-4000-8000-000000000001")
        .await;
    live.until(|line| line["type"] == "assistant").await;
    let started = stage.work().join("started");
    until("the command started", || started.exists()).await;
    live.send(
        json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}}),
    )
    .await;
    let result = live.until(|line| line["type"] == "result").await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    live.say("again", "aaaaaaaa-0000-4000-8000-000000000002")
        .await;
    let result = live.until(|line| line["type"] == "result").await;
    assert_eq!(result["result"], "back");
    assert_eq!(live.end().await.code, Some(0));
}
