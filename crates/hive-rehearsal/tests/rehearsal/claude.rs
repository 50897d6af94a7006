//! The real `claude`, with every request answered by a scenario.
//!
//! Without one these tests say that they are skipped (`hive_testkit::claude`).

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use hive_rehearsal::Rehearsal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::start;

/// A home and a working directory for one agent.
struct Agent {
    binary: PathBuf,
    dir: TempDir,
}

/// A run of `claude`.
#[derive(Debug)]
struct Run {
    exit: Option<i32>,
    events: Vec<Value>,
}

/// How it is started, where it differs from the usual.
#[derive(Clone, Copy)]
struct With {
    env: &'static [(&'static str, &'static str)],
    tools: &'static str,
    model: &'static str,
}

const KEY: With = With {
    env: &[("ANTHROPIC_API_KEY", "sk-ant-api03-dummy")],
    tools: "Read,Write",
    model: "claude-sonnet-4-5",
};

/// The default of a hive: newer models get their surroundings as system items between messages.
const HAIKU: With = With {
    model: "haiku",
    ..KEY
};

/// What a subscription gives.
const TOKEN: With = With {
    env: &[("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy")],
    tools: "Read",
    model: "claude-sonnet-4-5",
};

fn agent() -> Option<Agent> {
    let binary = hive_testkit::claude::claude()?;
    let dir = tempfile::tempdir().unwrap();
    for name in ["home", "config", "work", "tmp"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let settings = json!({"autoCompactEnabled": false}).to_string();
    std::fs::write(dir.path().join("settings.json"), settings).unwrap();
    std::fs::write(dir.path().join("system.md"), "You are ada, an agent.\n").unwrap();
    Some(Agent { binary, dir })
}

impl Agent {
    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// One turn, as the harness runs it: a new process that goes on with the conversation.
    async fn turn(&self, model: &Rehearsal, prompt: &str, with: With) -> Run {
        let dir = self.dir.path();
        let mut command = Command::new(&self.binary);
        command
            .args(["--print", "--verbose", "--output-format", "stream-json"])
            .args(["--model", with.model, "--continue", "--strict-mcp-config"])
            .args(["--tools", with.tools, "--allowedTools", with.tools])
            .arg("--settings")
            .arg(dir.join("settings.json"))
            .arg("--system-prompt-file")
            .arg(dir.join("system.md"))
            .current_dir(dir.join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", dir.join("home"))
            .env("TMPDIR", dir.join("tmp"))
            .env("CLAUDE_CONFIG_DIR", dir.join("config"))
            .env("ANTHROPIC_BASE_URL", model.url())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .envs(with.env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let prompt = prompt.to_owned();
        let run = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(prompt.as_bytes()).unwrap();
            drop(stdin);
            child.wait_with_output().unwrap()
        });
        let output = run.await.unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        Run {
            exit: output.status.code(),
            events: stdout
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        }
    }
}

impl Run {
    fn first(&self, kind: &str) -> &Value {
        let found = self.events.iter().find(|event| event["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind}: {:#?}", self.events))
    }

    fn system(&self, subtype: &str) -> Option<&Value> {
        self.events
            .iter()
            .find(|event| event["type"] == "system" && event["subtype"] == subtype)
    }

    fn result(&self) -> &Value {
        self.first("result")
    }

    /// The turn ended well with these words.
    fn assert_said(&self, text: &str) {
        let result = self.result();
        assert_eq!(result["result"], text, "{result:#}");
        assert_eq!(
            (self.exit, &result["is_error"]),
            (Some(0), &json!(false)),
            "{result:#}"
        );
        assert_eq!(result["terminal_reason"], "completed");
    }

    /// The turn failed with this status and reason.
    fn assert_failed(&self, status: &Value, reason: &str, text: &str) {
        let result = self.result();
        assert_eq!(
            (self.exit, &result["is_error"]),
            (Some(1), &json!(true)),
            "{result:#}"
        );
        assert_eq!(result["api_error_status"], *status, "{result:#}");
        assert_eq!(result["terminal_reason"], reason);
        assert!(
            result["result"].as_str().unwrap().contains(text),
            "{result:#}"
        );
    }
}

#[tokio::test]
async fn claude_two_turns_share_a_conversation_and_its_numbers() {
    let Some(agent) = agent() else { return };
    let model = start(
        "[[rule]]\n[rule.answer]\nthinking = 'hm'\ntext = 'I am {{body}}, call {{call}}'\n\
         usage = { input_tokens = 11, output_tokens = 22, cache_read_tokens = 33, cache_creation_tokens = 44 }",
    )
    .await;
    let first = agent.turn(&model, "ada", KEY).await;
    first.assert_said("I am ada, call 1");
    let usage = &first.result()["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&json!(11), &json!(22))
    );
    assert_eq!(usage["cache_read_input_tokens"], 33);
    assert_eq!(usage["cache_creation_input_tokens"], 44);
    assert_eq!(
        first.system("init").unwrap()["claude_code_version"],
        "2.1.325"
    );
    agent
        .turn(&model, "bob", KEY)
        .await
        .assert_said("I am bob, call 2");
    let seen = model.requests();
    assert_eq!(seen.len(), 2, "no side requests");
    assert_eq!(seen[0].path, "/v1/messages?beta=true");
    assert!(
        seen[0].body["system"]
            .to_string()
            .contains("You are ada, an agent.")
    );
    let history = seen[1].body["messages"].to_string();
    assert!(
        history.contains("I am ada, call 1") && history.contains("thinking"),
        "{history}"
    );
    assert_eq!(seen[1].last_user, "bob");
    model.stop().await;
}

#[tokio::test]
async fn claude_uses_a_tool_and_reports_its_result() {
    let Some(agent) = agent() else { return };
    std::fs::write(agent.work().join("a.txt"), "forty-two").unwrap();
    let model = start(
        "[[rule]]\nwhen.step = 0\nanswer = { text = 'let me look', tools = [\
           { name = 'Read', input = { file_path = '{{cwd}}/a.txt' } }, \
           { name = 'Read', input = { file_path = '{{cwd}}/missing.txt' } }] }\n\
         [[rule]]\nwhen = { step = 1, tool_error = true, tool_result = { regex = '(forty-\\w+)' } }\n\
         answer.text = 'it says {{match.1}}'",
    )
    .await;
    let run = agent.turn(&model, "what is in a.txt?", KEY).await;
    run.assert_said("it says forty-two");
    assert_eq!(
        run.result()["num_turns"],
        3,
        "two calls at once and the last words"
    );
    let seen = model.requests();
    let results = seen[1].body["messages"].to_string();
    assert_eq!(results.matches("\"tool_result\"").count(), 2, "{results}");
    model.stop().await;
}

#[tokio::test]
async fn claude_reports_a_bad_key() {
    let Some(agent) = agent() else { return };
    let model = start("[[rule]]\nfault = 'unauthorized'").await;
    let run = agent.turn(&model, "hi", KEY).await;
    run.assert_failed(&json!(401), "api_error", "Invalid API key");
    assert_eq!(run.first("assistant")["error"], "authentication_failed");
    let id = run.first("assistant")["request_id"].as_str().unwrap();
    assert!(id.starts_with("req_01"), "{id}");
    model.stop().await;
}

#[tokio::test]
async fn claude_reports_limits_and_when_they_end() {
    let Some(agent) = agent() else { return };
    let model = start(
        "[[rule]]\ntimes = 1\nfault = { kind = 'rate_limit', retry_after_secs = 120 }\n\
         [[rule]]\ntimes = 1\nfault = { kind = 'rate_limit', subscription = 'five_hour', reset_at = 1999999999 }\n\
         [[rule]]\nanswer = { text = 'ok', limits = { subscription = 'five_hour', status = 'allowed_warning', utilization = 0.95, reset_at = 1999999999 } }",
    )
    .await;
    let metered = agent.turn(&model, "hi", KEY).await;
    metered.assert_failed(&json!(429), "api_error", "Request rejected (429)");
    assert_eq!(metered.first("assistant")["error"], "rate_limit");
    assert_eq!(
        model.requests().len(),
        1,
        "a long retry-after is not waited for"
    );

    let subscribed = agent.turn(&model, "hi", TOKEN).await;
    subscribed.assert_failed(&json!(429), "api_error", "You've hit your 5-hour limit");
    assert_eq!(subscribed.result()["api_error"], "usage_limit_reached");
    let info = &subscribed.first("rate_limit_event")["rate_limit_info"];
    assert_eq!(
        (&info["status"], &info["resetsAt"]),
        (&json!("rejected"), &json!(1_999_999_999))
    );

    let warned = agent.turn(&model, "hi", TOKEN).await;
    warned.assert_said("ok");
    let info = &warned.first("rate_limit_event")["rate_limit_info"];
    assert_eq!(
        (&info["status"], &info["utilization"]),
        (&json!("allowed_warning"), &json!(0.95))
    );
    model.stop().await;
}

#[tokio::test]
async fn claude_reports_outages() {
    let Some(agent) = agent() else { return };
    #[rustfmt::skip]
    let table = [
        ("'overloaded'", 529, 1, "529 Overloaded"),
        ("'server_error'", 500, 1, "API Error: 500"),
        ("'forbidden'", 403, 1, "API Error: 403"),
        // A path that is not there may be the streaming alone, so it asks once more without.
        ("'model_not_found'", 404, 2, "issue with the selected model"),
        ("'credit'", 400, 1, "Credit balance is too low"),
        // A 400 that it does not know may be about a beta feature: it leaves out one after the other.
        ("{ kind = 'bad_request', message = 'odd thing' }", 400, 3, "API Error: 400 odd thing"),
    ];
    for (fault, status, requests, text) in table {
        let model = start(&format!("[[rule]]\nfault = {fault}")).await;
        let run = agent.turn(&model, "hi", KEY).await;
        run.assert_failed(&json!(status), "api_error", text);
        assert_eq!(model.requests().len(), requests, "{fault}");
        model.stop().await;
    }
    let model = start("").await;
    model.refuse().await;
    let run = agent.turn(&model, "hi", KEY).await;
    run.assert_failed(&Value::Null, "api_error", "ECONNREFUSED");
    assert_eq!(run.result()["api_error"], "connection_failed");
    model.stop().await;
}

#[tokio::test]
async fn claude_compacts_a_prompt_that_is_too_long_and_goes_on() {
    let Some(agent) = agent() else { return };
    let model = start(
        "[[rule]]\nwhen.last_user = 'the straw'\ntimes = 1\nfault = 'prompt_too_long'\n\
         [[rule]]\nanswer.text = 'ok'",
    )
    .await;
    agent
        .turn(&model, "remember the camel", KEY)
        .await
        .assert_said("ok");
    let full = agent.turn(&model, "the straw", KEY).await;
    full.assert_failed(&json!(400), "prompt_too_long", "Prompt is too long");

    let compacted = agent.turn(&model, "/compact", KEY).await;
    assert_eq!(compacted.exit, Some(0));
    let boundary = compacted.system("compact_boundary").unwrap();
    assert_eq!(boundary["compact_metadata"]["trigger"], "manual");
    let seen = model.requests();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2].rule, None, "a summary has its plain answer");

    agent.turn(&model, "go on", KEY).await.assert_said("ok");
    let after = model.requests()[3].body["messages"].to_string();
    assert!(
        after.contains("the conversation so far was rehearsed"),
        "{after}"
    );
    assert!(!after.contains("remember the camel"), "{after}");
    model.stop().await;
}

#[tokio::test]
async fn claude_asks_again_without_streaming_when_a_stream_breaks() {
    let Some(agent) = agent() else { return };
    for fault in ["reset", "cut", "error_event", "malformed"] {
        let model = start(&format!(
            "[[rule]]\nwhen.stream = true\nfault = '{fault}'\n[[rule]]\nanswer.text = 'recovered'"
        ))
        .await;
        agent.turn(&model, "hi", KEY).await.assert_said("recovered");
        let streamed: Vec<_> = model
            .requests()
            .iter()
            .map(|seen| seen.body["stream"].as_bool().unwrap_or(false))
            .collect();
        assert_eq!(streamed, [true, false], "{fault}");
        model.stop().await;
    }
}

#[tokio::test]
async fn claude_takes_the_tour() {
    let Some(agent) = agent() else { return };
    let model = start(
        hive_rehearsal::scenario::builtin::named("tour")
            .unwrap()
            .text,
    )
    .await;
    let prompt = "Message 7 from ruth.\n\n----- message 7 begins · c0ffee -----\n\
                  remember that the build is green\n----- message 7 ends · c0ffee -----\n";
    let run = agent.turn(&model, prompt, HAIKU).await;
    assert_eq!(run.exit, Some(0), "{:#?}", run.result());
    let note = std::fs::read_to_string(agent.work().join("notes/remembered-7-1.md")).unwrap();
    assert_eq!(note, "ruth wants me to remember:\n\nthe build is green\n");
    assert_eq!(run.result()["permission_denials"], json!([]));
    model.stop().await;
}
