//! The real `claude` uses every tool that there is, through `hive serve`, as a model would: it talks,
//! asks and answers, sets reminders and schedules, looks after a child, reads logs and runs commands
//! that end within its turn and after it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use hive_testkit::hive::{Options, TestHive};
use hive_wire::{
    agent::{Ask, Recv},
    grants::{Capability, Group, Groups},
    host::{Runtime, SetPermissions, Spawn},
};
use serde_json::{Value, json};

use crate::stage::Stage;

/// What the model does: one turn that uses everything, one that it asked for itself, and one that a
/// command caused when it ended.
const SCENARIO: &str = r#"
    [[rule]]
    when = { body = "use everything", step = 0 }
    answer.tools = [
      { name = "mcp__hyperhive__set_status", input = { text = "using everything" } },
      { name = "mcp__hyperhive__get_agent_meta", input = {} },
      { name = "mcp__hyperhive__list_peers", input = {} },
      { name = "mcp__hyperhive__recv", input = { max = 5 } },
      { name = "mcp__hyperhive__send", input = { to = "bob", body = "hello", key = "hello" } },
      { name = "mcp__hyperhive__ask", input = { question = "Friday?", to = "kid", options = ["yes", "no"] } },
      { name = "mcp__hyperhive__remind", input = { message = "look again", delay_seconds = 3600 } },
      { name = "mcp__hyperhive__schedule", input = { prompt = "daily", cron = "30 7 * * *", time_zone = "Europe/Vienna" } },
      { name = "mcp__hyperhive__list_agents", input = {} },
      { name = "mcp__hyperhive__get_logs", input = {} },
      { name = "mcp__hyperhive__get_host_journal", input = { lines = 3 } },
      { name = "mcp__bash__run", input = { cmd = "echo swift", wait_seconds = 30 } },
    ]
    [[rule]]
    when = { body = "use everything", step = 1 }
    answer.tools = [
      { name = "mcp__hyperhive__answer", input = { question_id = 1, answer = "yes" } },
      { name = "mcp__hyperhive__get_receipt", input = { message_id = "{{message_id | int}}" } },
      { name = "mcp__hyperhive__get_loose_ends", input = {} },
      { name = "mcp__hyperhive__list_schedules", input = {} },
      { name = "mcp__hyperhive__restart", input = { name = "kid" } },
      { name = "mcp__bash__run", input = { cmd = "until test -e go; do sleep 0.02; done; echo arrived", wait_seconds = 0 } },
    ]
    [[rule]]
    when = { body = "use everything", step = 2 }
    answer.tools = [
      { name = "mcp__hyperhive__cancel_loose_end", input = { kind = "reminder", reminder_id = 1 } },
      { name = "mcp__hyperhive__cancel_schedule", input = { schedule_id = 1 } },
      { name = "mcp__hyperhive__kill", input = { name = "kid" } },
      { name = "mcp__bash__status", input = { id = 2 } },
      { name = "mcp__hyperhive__request_spawn", input = { name = "tester", model = "haiku", reason = "Somebody has to test." } },
      { name = "mcp__hyperhive__request_apply_commit", input = { agent = "kid", commit_ref = "main", reason = "It is better so." } },
    ]
    [[rule]]
    when = { body = "use everything", step = 3 }
    answer.tools = [
      { name = "mcp__hyperhive__start", input = { name = "kid" } },
      { name = "mcp__hyperhive__request_next_turn", input = {} },
    ]
    [[rule]]
    when = { from = "bash-task-2", step = 0 }
    answer.tools = [{ name = "mcp__bash__status", input = { id = 2 } }]
    [[rule]]
    answer.text = "done"
"#;

/// A hive that runs a child of ada's: a script that does nothing.
async fn family() -> TestHive {
    let harness = Path::new(env!("CARGO_TARGET_TMPDIR")).join("idle-harness");
    fs::write(&harness, "#!/bin/sh\nexec sleep 1000000\n").unwrap();
    fs::set_permissions(&harness, fs::Permissions::from_mode(0o755)).unwrap();
    let options = Options {
        config: "[hive]\nroot_agent = \"\"\n[engine]\ndefault = \"/bin/true\"\n".to_owned(),
        env: vec![("HIVE_BIN".into(), harness.to_str().unwrap().to_owned())],
    };
    TestHive::start_with(options).await.unwrap()
}

async fn furnish(hive: &TestHive) {
    hive.spawn_agent("bob").await.unwrap();
    let host = hive.host_client();
    let kid = Spawn {
        parent: Some("ada".parse().unwrap()),
        runtime: Runtime::Process,
        ..Spawn::elsewhere("kid".parse().unwrap())
    };
    host.call(&kid).await.unwrap();
    propose_change(&hive.root().join("state/proposed/kid/config"));
    let all = SetPermissions {
        name: "ada".parse().unwrap(),
        reset: false,
        grant: Group::ALL.to_vec(),
        revoke: Vec::new(),
        grant_capabilities: vec![Capability::ReadHostJournal],
        revoke_capabilities: Vec::new(),
        recipients: None,
    };
    host.call(&all).await.unwrap();
    let ask = Ask {
        question: "Is it done?".to_owned(),
        options: Vec::new(),
        multi: false,
        wait: false,
        ttl_seconds: None,
        to: Some("ada".to_owned()),
        key: None,
    };
    hive.agent_client("bob").call(&ask).await.unwrap();
}

/// Commits a change of an agent's configuration, as somebody would who may propose one.
fn propose_change(repository: &Path) {
    let file = repository.join("agent.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{config}\n# as ada wants it\n")).unwrap();
    let identity = ["-c", "user.name=ada", "-c", "user.email=ada@hive"];
    let status = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(identity)
        .args(["commit", "--quiet", "--all", "--message", "as ada wants it"])
        .status();
    assert!(status.unwrap().success());
}

/// Every call that the model made, by its id: the tool, and what it answered.
fn calls(requests: &[Value]) -> BTreeMap<String, (String, Value)> {
    let mut calls = BTreeMap::new();
    for request in requests {
        let messages = request["messages"].as_array().unwrap();
        for block in messages
            .iter()
            .filter_map(|m| m["content"].as_array())
            .flatten()
        {
            let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str() {
                Some("tool_use") => {
                    calls
                        .entry(text("id"))
                        .or_insert((text("name"), Value::Null));
                }
                Some("tool_result") => {
                    if let Some(call) = calls.get_mut(&text("tool_use_id")) {
                        call.1 = block.clone();
                    }
                }
                _ => {}
            }
        }
    }
    calls
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn m2_m12_b1_the_real_claude_uses_every_tool() {
    let Some(stage) = Stage::set_on(SCENARIO, family).await else {
        return;
    };
    furnish(&stage.hive).await;
    let [daemon, bridge] = hive_testkit::bash::programs().unwrap();
    let mut stage = stage
        .with("HIVE_TOOL_GROUPS", &Groups::all().join())
        .with("HIVE_BASH_DAEMON", daemon.to_str().unwrap())
        .with("HIVE_BASH_MCP", bridge.to_str().unwrap());
    let id = stage.send("use everything").await;
    stage.start();
    stage.acked(id).await;
    let again = stage
        .event("turn_start", |data| data["from"] == "self")
        .await;
    let ended = stage
        .event("turn_end", |data| data["turn"] == again["turn"])
        .await;
    assert_eq!(ended["outcome"], "ok", "the turn that it asked for");
    fs::write(stage.path("state/go"), "").unwrap();
    let woken = stage
        .event("turn_start", |data| data["from"] == "bash-task-2")
        .await;
    let ended = stage
        .event("turn_end", |data| data["turn"] == woken["turn"])
        .await;
    assert_eq!(
        ended["outcome"], "ok",
        "the turn of a command that has ended"
    );

    let requests: Vec<Value> = stage
        .model
        .requests()
        .into_iter()
        .map(|r| (*r.body).clone())
        .collect();
    let calls = calls(&requests);
    for (tool, answer) in calls.values() {
        assert!(!answer.is_null(), "{tool} was not answered");
        assert_ne!(answer["is_error"], true, "{tool}: {answer}");
    }
    let used: BTreeSet<_> = calls.values().map(|(tool, _)| tool.clone()).collect();
    let toolbox = hive_mcp::hyperhive::toolbox();
    let hive = toolbox
        .tools()
        .map(|(tool, _)| format!("mcp__hyperhive__{}", tool.name));
    let bash = ["run", "status"].map(|tool| format!("mcp__bash__{tool}"));
    let there_are: BTreeSet<_> = hive.chain(bash).collect();
    assert_eq!(used, there_are, "every tool, and no other");

    let all = json!(calls.values().collect::<Vec<_>>()).to_string();
    for words in [
        "Friday?",
        "Europe/Vienna",
        "bash-task-2",
        "swift",
        "arrived",
    ] {
        assert!(all.contains(words), "{words} is missing in {all}");
    }
    let recv = Recv {
        max: 8,
        ..Recv::default()
    };
    let mail = stage.hive.agent_client("bob").call(&recv).await.unwrap();
    let bodies: Vec<_> = mail
        .messages
        .iter()
        .map(|message| message.body.as_str())
        .collect();
    assert!(bodies.contains(&"hello"), "{bodies:?}");
    assert!(
        bodies.iter().any(|body| body.contains("question_answered")),
        "{bodies:?}"
    );
}
