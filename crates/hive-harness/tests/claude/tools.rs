//! Turns that use tools: the engine's own, and the hive's.

use hive_wire::host::Inbox;

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
