//! What only `hive-engine` does.

use serde_json::json;

use crate::support::{Engine, Run, Stage};

const CALL: &str = r#"
[[rule]]
when.step = 0
answer.tools = [{ name = "Bash", input = { command = "{{body}}" } }]
[[rule]]
answer.text = "{{tool_result}}"
"#;

async fn bash(command: &str, more: &[&str]) -> Run {
    let stage = Stage::new(Engine::Native, CALL).await;
    stage.turn(command, more).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_never_see_the_key() {
    for command in ["env", "cat /proc/self/environ", "echo $ANTHROPIC_API_KEY"] {
        let run = bash(command, &["--allowedTools", "Bash"]).await;
        let text = serde_json::to_string(&run.lines).unwrap();
        assert!(!text.contains("dummy-key"), "{command}: {text}");
        assert_eq!(run.code, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_that_quotes_the_key_is_masked() {
    let stage = Stage::new(
        Engine::Native,
        "[[rule]]\nfault = { kind = 'bad_request', message = 'bad key dummy-key-0123456789 given' }",
    )
    .await;
    let run = stage.turn("hi", &[]).await;
    assert_eq!(run.result()["result"], "API Error: 400 bad key *** given");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_a_session_is_told() {
    let stage = Stage::new(
        Engine::Native,
        "[[rule]]\nwhen.body = 'slow'\nfault = 'no_answer'\n[[rule]]\nanswer.text = 'ok'",
    )
    .await;
    let mut live = stage.open(&stage.flags(&["--continue"]));
    live.write("slow").await;
    stage.model.wait_for_requests(1).await.unwrap();
    let second = stage.turn("x", &["--continue"]).await;
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("in use by another process"),
        "{}",
        second.stderr
    );
    live.signal(rustix::process::Signal::KILL);
    live.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_and_json_output() {
    let stage = Stage::new(Engine::Native, "[[rule]]\nanswer.text = 'hello'").await;
    let run = stage
        .raw("hi", &["-p", "--output-format", "json", "--model", "haiku"])
        .await;
    assert_eq!(run.result()["result"], "hello");
    assert_eq!(run.lines.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_calls_are_answered_in_order_and_one_failure_harms_no_other() {
    let stage = Stage::new(
        Engine::Native,
        r#"
        [[rule]]
        when.step = 0
        [rule.answer]
        tools = [
            { name = "Read", input = { file_path = "a" } },
            { name = "Read", input = { file_path = "missing" } },
            { name = "Read", input = { wrong = 1 } },
            { name = "Bash", input = { command = "exit 3" } },
            { name = "Read", input = { file_path = "b" } },
        ]
        [[rule]]
        answer.text = "done"
        "#,
    )
    .await;
    stage.write("a", "first");
    stage.write("b", "last");
    let run = stage.turn("go", &["--allowedTools", "Bash"]).await;
    let results = run.tool_results();
    assert_eq!(results[0], "1\tfirst");
    assert!(results[1].contains("File does not exist"), "{}", results[1]);
    assert!(
        results[2].contains("InputValidationError"),
        "{}",
        results[2]
    );
    assert!(results[3].starts_with("Exit code 3"), "{}", results[3]);
    assert_eq!(results[4], "1\tlast");
    assert_eq!(run.result()["result"], "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_compatible_servers() {
    let mut stage = Stage::new(
        Engine::Native,
        r#"
        [[rule]]
        when = { step = 0, api = "openai" }
        answer.tools = [{ name = "Read", input = { file_path = "note" } }]
        [[rule]]
        when.api = "openai"
        answer.text = "it says {{tool_result}}"
        "#,
    )
    .await;
    stage.key = None;
    stage.write("note", "banana");
    let url = format!("{}/v1", stage.model.url());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hive-engine"))
        .args(stage.flags(&["--provider", "openai"]))
        .arg("go")
        .current_dir(stage.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", stage.dir.path())
        .env("OPENAI_BASE_URL", url)
        .env("OPENAI_API_KEY", "dummy-key-0123456789")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("it says 1\\tbanana"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permission_prompts_on_the_standard_streams() {
    let stage = Stage::new(Engine::Native, CALL).await;
    let flags = stage.flags(&[
        "--input-format",
        "stream-json",
        "--permission-prompt-tool",
        "stdio",
    ]);
    for (answer, expected) in [
        (
            json!({"behavior": "allow", "updatedInput": {"command": "echo changed"}}),
            "changed",
        ),
        (
            json!({"behavior": "deny", "message": "not today"}),
            "not today",
        ),
    ] {
        let mut live = stage.open(&flags);
        live.say("mkdir new", &uuid::Uuid::new_v4().to_string())
            .await;
        let asked = live.until(|line| line["type"] == "control_request").await;
        assert_eq!(asked["request"]["subtype"], "can_use_tool");
        assert_eq!(asked["request"]["preview"], "mkdir new");
        live.send(json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": asked["request_id"], "response": answer}}))
            .await;
        let result = live.until(|line| line["type"] == "result").await;
        assert_eq!(result["result"], expected);
        live.end().await;
        assert!(!stage.work().join("new").exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_and_time_end_a_turn() {
    let stage = Stage::new(
        Engine::Native,
        "[[rule]]\nwhen.body = 'slow'\nfault = 'no_answer'\n[[rule]]\nanswer = { tools = [{ name = 'Read', input = { file_path = 'x' } }], usage = { input_tokens = 1000000 } }",
    )
    .await;
    stage.write("x", "x");
    let run = stage.turn("go", &["--max-budget-usd", "0.5"]).await;
    assert_eq!(run.result()["subtype"], "error_max_budget_usd");
    assert_eq!(run.code, Some(1));
    let run = stage.turn("slow", &["--max-seconds", "1"]).await;
    assert_eq!(run.code, Some(1));
    assert_eq!(run.result()["is_error"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_context_cannot_hold_is_refused_without_a_request() {
    let stage = Stage::new(
        Engine::Native,
        "[[rule]]\nanswer = { text = 'ok', usage = { input_tokens = 190000 } }",
    )
    .await;
    let settings = json!({"autoCompactEnabled": false}).to_string();
    stage
        .turn("one", &["--continue", "--settings", &settings])
        .await;
    let run = stage
        .turn("two", &["--continue", "--settings", &settings])
        .await;
    assert_eq!(run.result()["terminal_reason"], "blocking_limit");
    assert_eq!(run.result()["result"], "Prompt is too long");
    assert_eq!(run.code, Some(1));
    assert_eq!(stage.model.requests().len(), 1);
    let compacted = stage
        .turn("/compact", &["--continue", "--settings", &settings])
        .await;
    assert!(
        compacted
            .shape()
            .contains(&"system/compact_boundary".to_owned())
    );
    let after = stage
        .turn("three", &["--continue", "--settings", &settings])
        .await;
    assert_eq!(after.code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_bash_call_started_ends_with_it() {
    let stage = Stage::new(Engine::Native, CALL).await;
    let run = stage
        .turn("sleep 300 & echo $!", &["--allowedTools", "Bash"])
        .await;
    let pid: i32 = run.tool_results()[0].trim().parse().unwrap();
    assert_eq!(run.code, Some(0));
    // The shell ended by itself, so its job may live on; a time-out ends the whole group.
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
}

#[test]
fn permissions_can_be_tried_out() {
    let dir = tempfile::tempdir().unwrap();
    let settings = r#"{"permissions":{"allow":["Bash(cargo *)"],"deny":["Bash(rm *)"]}}"#;
    for (command, code, needle) in [
        ("cargo test", 0, "allow: Bash(cargo *) (--settings:1)"),
        ("evil", 2, "ask: "),
        (
            "cargo test; sudo rm x",
            3,
            "deny: Bash(rm *) (--settings:1)",
        ),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_hive-engine"))
            .args(["permissions", "test", command, "--settings", settings])
            .current_dir(dir.path())
            .env_clear()
            .env("HOME", dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.starts_with(needle), "{text}");
    }
}
