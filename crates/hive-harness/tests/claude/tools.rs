//! Turns that use tools: the engine's own, and the hive's.

use hive_wire::host::{AnswerAsOperator, Inbox, Questions};
use serde_json::json;

use crate::stage::Stage;

#[tokio::test]
async fn m15_the_engine_reads_files_below_its_state() {
    let scenario = r#"
        [[rule]]
        when.step = 0
        answer.tools = [{ name = "Read", input = { file_path = "{{cwd}}/note.txt" } }]
        [[rule]]
        answer.text = "It says: {{tool_result}}"
    "#;
    let Some(mut stage) = Stage::new(scenario).await else {
        return;
    };
    std::fs::write(stage.path("state/note.txt"), "the moon is full").unwrap();
    let id = stage.send("what does the note say?").await;
    stage.acked(id).await;
    let used = |data: &serde_json::Value| data["value"]["message"]["content"][0]["name"] == "Read";
    stage.event("stream", used).await;
    let asked = stage.model.requests();
    assert!(
        asked[1].body.to_string().contains("the moon is full"),
        "the model saw the file"
    );
    let offered: Vec<_> = asked[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    for tool in [
        "Edit",
        "Glob",
        "Grep",
        "Read",
        "Write",
        "mcp__hyperhive__send",
        "mcp__hyperhive__recv",
        "mcp__hyperhive__set_status",
    ] {
        assert!(
            offered.iter().any(|name| name == tool),
            "{tool} is missing in {offered:?}"
        );
    }
    for tool in [
        "Bash",
        "Task",
        "NotebookEdit",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
    ] {
        assert!(
            !offered.iter().any(|name| name == tool),
            "{tool} is offered"
        );
    }
}

#[tokio::test]
async fn m2_m3_m10_an_agent_answers_drains_and_says_what_it_does() {
    let scenario = r#"
        [[rule]]
        when.step = 0
        answer.tools = [
          { name = "mcp__hyperhive__set_status", input = { text = "reading mail" } },
          { name = "mcp__hyperhive__recv", input = { max = 5 } },
        ]
        [[rule]]
        when.step = 1
        answer.tools = [{ name = "mcp__hyperhive__send", input = { to = "operator", body = "both read" } }]
        [[rule]]
        answer.text = "done"
    "#;
    let Some(mut stage) = Stage::set(scenario).await else {
        return;
    };
    let first = stage.send("one").await;
    let second = stage.send("two").await;
    stage.start();
    stage.acked(first).await;
    let receipt = stage.acked(second).await;
    assert_eq!(
        receipt.deliveries, 1,
        "what the turn drained is acked with it"
    );
    stage.turns_ended(1).await;
    assert_eq!(stage.outcomes(), ["ok"], "one turn dealt with both");
    let seen = stage.model.requests();
    assert!(
        seen[1].body.to_string().contains("two"),
        "the drained message reached the model"
    );
    let inbox = stage
        .hive
        .host_client()
        .call(&Inbox::default())
        .await
        .unwrap();
    assert_eq!(inbox.messages[0].body, "both read");
    assert_eq!(
        std::fs::read_to_string(stage.path("state/hyperhive-status"))
            .unwrap()
            .trim(),
        "reading mail"
    );
}

/// A model that wants to change what decides which code runs: no allow rule covers that.
const WRITES_A_HOOK: &str = r#"
    [[rule]]
    when.step = 0
    answer.tools = [{ name = "Write", input = { file_path = "{{cwd}}/.git/hooks/pre-commit", content = "evil" } }]
    [[rule]]
    answer.text = "{{tool_result}}"
"#;

#[tokio::test]
async fn a5_what_the_rules_leave_open_is_asked_of_the_operator() {
    for (answer, is_allowed) in [("allow", true), ("not today", false)] {
        let Some(stage) = Stage::set(WRITES_A_HOOK).await else {
            return;
        };
        let mut stage = stage.with("HIVE_CONSENT_SECS", "300");
        std::fs::create_dir_all(stage.path("state/.git/hooks")).unwrap();
        stage.start();
        let id = stage.send("set it up").await;
        let host = stage.hive.host_client();
        let asked = async {
            loop {
                let open = host.call(&Questions::default()).await.unwrap().questions;
                if !open.is_empty() {
                    break open;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let open = stage.patiently("a question to the operator", asked).await;
        let question = &open[0].question;
        assert!(question.contains("Write"), "{question}");
        assert!(question.contains(".git/hooks/pre-commit"), "{question}");
        assert_eq!(open[0].options, ["allow", "deny"]);
        assert!(open[0].expires_at.is_some(), "it has a deadline");
        let answered = AnswerAsOperator {
            question_id: open[0].question_id,
            answer: answer.to_owned(),
        };
        host.call(&answered).await.unwrap();
        assert_eq!(stage.acked(id).await.deliveries, 1);
        let hook = stage.path("state/.git/hooks/pre-commit");
        assert_eq!(hook.exists(), is_allowed, "{}", stage.story());
        let told = stage.model.requests()[1].body["messages"].to_string();
        assert_eq!(told.contains("not today"), !is_allowed, "{told}");
        let offered = stage.model.requests()[0].body["tools"].to_string();
        assert!(
            !offered.contains("permission_prompt"),
            "it is not for the model"
        );
    }
}

/// A model that uses two tools of a further server, each in a step of its own.
const USES_A_PEER: &str = r#"
    [[rule]]
    when.step = 0
    answer.tools = [{ name = "mcp__peer__list_peers", input = {} }]
    [[rule]]
    when.step = 1
    answer.tools = [{ name = "mcp__peer__send", input = { to = "operator", body = "by way of bob" } }]
    [[rule]]
    answer.text = "done"
"#;

#[tokio::test]
async fn m13_of_a_further_server_only_the_tools_on_its_list_can_be_used() {
    for (allowed, sends) in [(Some(["list_peers"]), false), (None, true)] {
        let Some(stage) = Stage::set(USES_A_PEER).await else {
            return;
        };
        stage.hive.spawn_agent("bob").await.unwrap();
        let mut peer = json!({
            "command": env!("CARGO_BIN_EXE_hive"),
            "args": ["mcp"],
            "env": {"HIVE_SOCKET": stage.hive.agent_socket("bob")},
        });
        if let Some(allowed) = allowed {
            peer["allowedTools"] = json!(allowed);
        }
        let extra = stage.path("extra-mcp.json");
        let servers = json!({"mcpServers": {"peer": peer}});
        std::fs::write(&extra, servers.to_string()).unwrap();
        let mut stage = stage.with("HIVE_EXTRA_MCP", extra.to_str().unwrap());
        stage.start();
        let id = stage.send("ask around").await;
        stage.acked(id).await;

        let asked = stage.model.requests();
        let answered = |step: usize| {
            let messages = asked[step].body["messages"].as_array().unwrap();
            let content = messages.last().unwrap()["content"].as_array().unwrap();
            let results = content.iter();
            let mut results = results.filter(|block| block["type"] == "tool_result");
            results.next().unwrap().clone()
        };
        let listed = answered(1);
        assert_ne!(listed["is_error"], true, "{listed}");
        let is_from_bob = listed.to_string().contains("ada");
        assert!(is_from_bob, "bob's peer is ada: {listed}");
        let sent = answered(2);
        assert_eq!(sent["is_error"] == true, !sends, "{sent}");
        let host = stage.hive.host_client();
        let mail = host.call(&Inbox::default()).await.unwrap().messages;
        let mail: Vec<_> = mail.iter().map(|m| (m.from.as_str(), &*m.body)).collect();
        let wanted: &[_] = if sends {
            &[("bob", "by way of bob")]
        } else {
            &[]
        };
        assert_eq!(mail, wanted, "{}", stage.story());
    }
}
