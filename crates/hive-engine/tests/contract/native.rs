//! What only `hive-engine` does.

use hive_testkit::waiting::until;
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
    // Gone, or waiting for its new parent to notice.
    let is_gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.contains(") Z "),
    };
    until("the command is gone", is_gone).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_break_are_asked_for_again() {
    for fault in [
        "stall",
        "cut",
        "reset",
        "malformed",
        "error_event",
        "no_answer",
        "server_error",
    ] {
        let scenario =
            format!("[[rule]]\ntimes = 1\nfault = '{fault}'\n[[rule]]\nanswer.text = 'recovered'");
        let mut stage = Stage::new(Engine::Native, &scenario).await;
        stage.retries = 1;
        stage.env = vec![
            ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "3000"),
            ("API_TIMEOUT_MS", "3000"),
        ];
        let run = stage.turn("hi", &[]).await;
        assert_eq!(run.code, Some(0), "{fault}: {run:#?}");
        assert_eq!(run.result()["result"], "recovered", "{fault}");
        let retries = run
            .lines
            .iter()
            .filter(|line| line["subtype"] == "api_retry")
            .count();
        assert_eq!(retries, 1, "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_after_a_whole_call_is_used() {
    let stage = Stage::new(
        Engine::Native,
        r#"
        [[rule]]
        when.step = 0
        fault = { kind = "cut", after_events = 5 }
        answer.tools = [{ name = "Read", input = { file_path = "note" } }, { name = "Read", input = { file_path = "note" } }]
        [[rule]]
        answer.text = "done"
        "#,
    )
    .await;
    stage.write("note", "banana");
    let run = stage.turn("go", &[]).await;
    let results = run.tool_results().len();
    assert!(run.result()["is_error"] == true || results == 1, "{run:#?}");
    let calls = run
        .shape()
        .iter()
        .filter(|word| *word == "assistant/tool_use")
        .count();
    assert_eq!(calls, results, "every call that was told is answered");
}

/// The file keeps what the model has seen, so that an edit in the next turn needs no second look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_read_in_one_turn_can_be_edited_in_the_next() {
    let stage = Stage::new(
        Engine::Native,
        r#"
        [[rule]]
        when = { step = 0, body = "read" }
        answer.tools = [{ name = "Read", input = { file_path = "note" } }]
        [[rule]]
        when = { step = 0, body = "edit" }
        answer.tools = [{ name = "Edit", input = { file_path = "note", old_string = "banana", new_string = "cherry" } }]
        [[rule]]
        answer.text = "{{tool_result}}"
        "#,
    )
    .await;
    stage.write("note", "banana");
    let more = [
        "--continue",
        "--tools",
        "Read,Edit",
        "--allowedTools",
        "Edit",
    ];
    let blind = stage.turn("edit", &more).await;
    assert!(
        blind.tool_results()[0].contains("has not been read"),
        "{blind:#?}"
    );
    stage.turn("read", &more).await;
    let edited = stage.turn("edit", &more).await;
    assert!(
        edited.tool_results()[0].contains("updated successfully"),
        "{edited:#?}"
    );
    assert_eq!(
        std::fs::read_to_string(stage.work().join("note")).unwrap(),
        "cherry"
    );
    std::fs::write(stage.work().join("note"), "banana, someone else's").unwrap();
    let stale = stage.turn("edit", &more).await;
    assert!(
        stale.tool_results()[0].contains("modified since read"),
        "{stale:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_output_is_cut_and_the_whole_of_it_can_be_read() {
    let stage = Stage::new(
        Engine::Native,
        r#"
        [[rule]]
        when = { step = 0 }
        answer.tools = [{ name = "Bash", input = { command = "seq 1 20000" } }]
        [[rule]]
        when = { step = 1, tool_result = { regex = 'is in (?<path>\S+) ' } }
        answer.tools = [{ name = "Read", input = { file_path = "{{match.path}}", offset = 10000, limit = 1 } }]
        [[rule]]
        answer.text = "done"
        "#,
    )
    .await;
    let run = stage.turn("go", &[]).await;
    let results = run.tool_results();
    assert!(
        results[0].starts_with("1\n2\n") && results[0].ends_with("19999\n20000"),
        "{}",
        results[0]
    );
    assert_eq!(results[1], "10000\t10000");
}
