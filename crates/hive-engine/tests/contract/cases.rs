//! Turns that end well.

use serde_json::json;

use crate::support::{Engine, Stage, contract};

contract!(
    plain,
    reads_a_file,
    parallel_tools,
    denied_without_a_rule,
    mcp_over_stdio,
    continues,
    resumes,
    forks,
    partial_messages,
    several_turns,
    compacts,
    max_turns,
    a_dead_mcp_server,
    unknown_tool,
    long_answers_go_on,
);

const HELLO: &str = "[[rule]]\nanswer.text = 'hello'";

async fn plain(engine: Engine) {
    let stage = Stage::new(engine, HELLO).await;
    let run = stage.turn("hi", &[]).await;
    assert_eq!(
        run.shape(),
        ["system/init", "assistant/text", "result/success"]
    );
    assert_eq!(run.code, Some(0));
    assert_eq!(run.stderr, "");
    let result = run.result();
    assert_eq!(result["result"], "hello");
    assert_eq!(result["is_error"], false);
    assert_eq!(result["terminal_reason"], "completed");
    assert_eq!(result["num_turns"], 1);
    assert_eq!(result["stop_reason"], "end_turn");
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert!(result["usage"]["input_tokens"].is_u64());
    assert_eq!(result["permission_denials"], json!([]));
    assert_eq!(run.init()["session_id"], result["session_id"]);
    assert_eq!(run.init()["permissionMode"], "default");
    assert_eq!(run.init()["apiKeySource"], "ANTHROPIC_API_KEY");
}

async fn reads_a_file(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.step = 0
        answer.tools = [{ name = "Read", input = { file_path = "{{body}}" } }]
        [[rule]]
        answer.text = "it says {{tool_result}}"
        "#,
    )
    .await;
    let path = stage.write("note.txt", "banana-42\n");
    let run = stage.turn(&path, &[]).await;
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "assistant/tool_use",
            "user/tool_result",
            "assistant/text",
            "result/success"
        ]
    );
    assert_eq!(run.tool_results(), ["1\tbanana-42\n2\t"]);
    let result = run
        .lines
        .iter()
        .find(|line| line["type"] == "user")
        .unwrap();
    assert_eq!(result["tool_use_result"]["type"], "text");
    assert_eq!(result["tool_use_result"]["file"]["content"], "banana-42\n");
    assert_eq!(run.result()["num_turns"], 2);
}

async fn parallel_tools(engine: Engine) {
    // `claude` prints them as they become ready.
    let in_call_order = engine.is_native();
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.step = 0
        [rule.answer]
        text = "both"
        tools = [
            { name = "Read", input = { file_path = "{{body}}/a" } },
            { name = "Read", input = { file_path = "{{body}}/b" } },
        ]
        [[rule]]
        answer.text = "done"
        "#,
    )
    .await;
    stage.write("a", "first");
    stage.write("b", "second");
    let run = stage.turn(&stage.work().display().to_string(), &[]).await;
    let mut results = run.tool_results();
    if !in_call_order {
        results.sort();
    }
    assert_eq!(results, ["1\tfirst", "1\tsecond"]);
    assert_eq!(run.result()["num_turns"], 3);
    let ids: Vec<_> = run
        .lines
        .iter()
        .filter(|line| line["type"] == "assistant")
        .map(|line| line["message"]["id"].as_str().unwrap())
        .collect();
    assert!(
        ids[0] == ids[1] && ids[1] == ids[2],
        "blocks of one answer share its id: {ids:?}"
    );
}

async fn denied_without_a_rule(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.step = 0
        answer.tools = [{ name = "Write", input = { file_path = "{{body}}/new", content = "x" } }]
        [[rule]]
        answer.text = "ok"
        "#,
    )
    .await;
    let work = stage.work();
    let run = stage.turn(&work.display().to_string(), &[]).await;
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "assistant/tool_use",
            "system/permission_denied",
            "user/tool_result",
            "assistant/text",
            "result/success"
        ]
    );
    assert_eq!(run.code, Some(0));
    let denials = run.result()["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1);
    assert_eq!(denials[0]["tool_name"], "Write");
    assert!(run.tool_results()[0].contains("haven't granted it yet"));
    assert!(!work.join("new").exists());
    let allowed = stage
        .turn(&work.display().to_string(), &["--allowedTools", "Write"])
        .await;
    assert_eq!(allowed.result()["permission_denials"], json!([]));
    assert_eq!(std::fs::read_to_string(work.join("new")).unwrap(), "x");
}

/// A server in a few lines of shell: it tells whether it can see the key.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("*[A-Za-z0-9_-]*"*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"test","version":"1"}}}' ;;
    *'"method":"tools/list"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"echo","description":"Says it back.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}}' ;;
    *'"method":"tools/call"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"key='"${ANTHROPIC_API_KEY-none}"' own='"$OWN"'"}]}}' ;;
    *'"id":'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no such method"}}' ;;
  esac
done
"#;

async fn mcp_over_stdio(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.step = 0
        answer.tools = [{ name = "mcp__test__echo", input = { text = "x" } }]
        [[rule]]
        answer.text = "done"
        "#,
    )
    .await;
    let script = stage.write("server.sh", SERVER);
    let config = json!({"mcpServers": {"test": {"command": "bash", "args": [script], "env": {"OWN": "yes"}}}});
    let config = stage.write("mcp.json", &config.to_string());
    let more = [
        "--mcp-config",
        config.as_str(),
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__test",
    ];
    let run = stage.turn("go", &more).await;
    assert_eq!(run.init()["mcp_servers"][0]["status"], "connected");
    let tools = run.init()["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("mcp__test__echo")), "{tools:?}");
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "assistant/tool_use",
            "user/tool_result",
            "assistant/text",
            "result/success"
        ]
    );
    let said = &run.tool_results()[0];
    assert!(said.ends_with("own=yes"), "{said}");
    if stage.engine.is_native() {
        assert_eq!(said, "key=none own=yes", "a server never sees the key");
    }
}

const CHAIN: &str = r#"
[[rule]]
when.body = "remember"
answer.text = "noted"
[[rule]]
answer.text = "ok"
"#;

async fn continues(engine: Engine) {
    let stage = Stage::new(engine, CHAIN).await;
    let first = stage.turn("remember banana", &["--continue"]).await;
    assert_eq!(first.code, Some(0), "no earlier session is no error");
    let second = stage.turn("what was it", &["--continue"]).await;
    assert_eq!(first.result()["session_id"], second.result()["session_id"]);
    let seen = stage.model.requests();
    let body = serde_json::to_string(&seen.last().unwrap().body).unwrap();
    assert!(
        body.contains("remember banana") && body.contains("noted"),
        "{body}"
    );
    let (one, two) = (
        &first.result()["total_cost_usd"],
        &second.result()["total_cost_usd"],
    );
    assert!(
        two.as_f64() > one.as_f64(),
        "the cost is that of the session"
    );
    let fresh = stage.turn("what was it", &[]).await;
    assert_ne!(fresh.result()["session_id"], first.result()["session_id"]);
}

async fn resumes(engine: Engine) {
    let stage = Stage::new(engine, CHAIN).await;
    let id = "11111111-2222-4333-8444-555555555555";
    let first = stage.turn("remember banana", &["--session-id", id]).await;
    assert_eq!(first.result()["session_id"], id);
    let taken = stage.turn("again", &["--session-id", id]).await;
    assert_eq!(taken.code, Some(1));
    assert!(taken.stderr.contains("already in use"), "{}", taken.stderr);
    let second = stage.turn("what was it", &["--resume", id]).await;
    assert_eq!(second.result()["session_id"], id);
    let missing = "99999999-2222-4333-8444-555555555555";
    let unknown = stage.turn("x", &["--resume", missing]).await;
    assert_eq!(unknown.code, Some(1));
    assert_eq!(
        unknown.stderr.trim(),
        format!("No conversation found with session ID: {missing}")
    );
    assert_eq!(unknown.result()["subtype"], "error_during_execution");
}

async fn forks(engine: Engine) {
    let stage = Stage::new(engine, CHAIN).await;
    let first = stage.turn("remember banana", &[]).await;
    let id = first.result()["session_id"].as_str().unwrap().to_owned();
    let fork = stage
        .turn("and now", &["--resume", &id, "--fork-session"])
        .await;
    assert_ne!(fork.result()["session_id"], id.as_str());
    let body = serde_json::to_string(&stage.model.requests().last().unwrap().body).unwrap();
    assert!(body.contains("remember banana"));
    stage.turn("third", &["--resume", &id]).await;
    let body = serde_json::to_string(&stage.model.requests().last().unwrap().body).unwrap();
    assert!(!body.contains("and now"), "the original is untouched");
}

async fn partial_messages(engine: Engine) {
    let stage = Stage::new(engine, HELLO).await;
    let run = stage.turn("hi", &["--include-partial-messages"]).await;
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "stream_event/message_start",
            "stream_event/content_block_start",
            "stream_event/content_block_delta",
            "assistant/text",
            "stream_event/content_block_stop",
            "stream_event/message_delta",
            "stream_event/message_stop",
            "result/success"
        ]
    );
}

async fn several_turns(engine: Engine) {
    let stage = Stage::new(engine, "[[rule]]\nanswer.text = 'you said {{body}}'").await;
    let flags = stage.flags(&["--input-format", "stream-json"]);
    let mut live = stage.open(&flags);
    let ids = [
        "aaaaaaaa-0000-4000-8000-000000000001",
        "aaaaaaaa-0000-4000-8000-000000000002",
    ];
    live.say("one", ids[0]).await;
    let first = live.until(|line| line["type"] == "result").await;
    assert_eq!(first["result"], "you said one");
    assert_eq!(first["user_message_uuids"], json!([ids[0]]));
    // A prompt that was taken is not taken again.
    live.say("one", ids[0]).await;
    live.say("two", ids[1]).await;
    let second = live.until(|line| line["type"] == "result").await;
    assert_eq!(second["result"], "you said two");
    assert_eq!(second["session_id"], first["session_id"]);
    let run = live.end().await;
    assert_eq!(run.code, Some(0));
    let inits = run
        .lines
        .iter()
        .filter(|line| line["subtype"] == "init")
        .count();
    assert_eq!(inits, 2, "one init per turn");
}

async fn compacts(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.request = "summary"
        answer.text = "<summary>they spoke of bananas</summary>"
        [[rule]]
        answer.text = "ok"
        "#,
    )
    .await;
    let empty = stage.turn("/compact", &["--continue"]).await;
    assert_eq!(empty.code, Some(0));
    assert!(
        !empty
            .shape()
            .contains(&"system/compact_boundary".to_owned())
    );
    let stage_turn = stage.turn("remember banana", &["--continue"]).await;
    let id = stage_turn.result()["session_id"].clone();
    let run = stage.turn("/compact", &["--continue"]).await;
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.shape(),
        [
            "system/status/compacting",
            "system/status",
            "system/init",
            "system/compact_boundary",
            "user/text",
            "user/text",
            "result/success"
        ]
    );
    let boundary = run
        .lines
        .iter()
        .find(|line| line["subtype"] == "compact_boundary")
        .unwrap();
    assert_eq!(boundary["compact_metadata"]["trigger"], "manual");
    assert_eq!(run.result()["local_command"], "compact");
    assert_eq!(run.result()["num_turns"], 0);
    assert_eq!(run.result()["session_id"], id);
    stage.turn("go on", &["--continue"]).await;
    let body = serde_json::to_string(&stage.model.requests().last().unwrap().body).unwrap();
    assert!(body.contains("they spoke of bananas"), "{body}");
}

async fn max_turns(engine: Engine) {
    let stage = Stage::new(
        engine,
        "[[rule]]\nanswer.tools = [{ name = 'Read', input = { file_path = '{{body}}' } }]",
    )
    .await;
    let path = stage.write("x", "x");
    let run = stage.turn(&path, &["--max-turns", "1"]).await;
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "assistant/tool_use",
            "user/tool_result",
            "result/error_max_turns"
        ]
    );
    assert_eq!(run.code, Some(1));
    assert_eq!(run.result()["terminal_reason"], "max_turns");
    assert_eq!(
        run.result()["errors"],
        json!(["Reached maximum number of turns (1)"])
    );
}

async fn a_dead_mcp_server(engine: Engine) {
    let stage = Stage::new(engine, HELLO).await;
    let config = json!({"mcpServers": {"dead": {"command": "false"}}}).to_string();
    let run = stage
        .turn("hi", &["--mcp-config", &config, "--strict-mcp-config"])
        .await;
    assert_eq!(run.code, Some(0), "the turn runs without it");
    assert_eq!(run.init()["mcp_servers"][0]["status"], "failed");
}

async fn unknown_tool(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        strict = false
        [[rule]]
        when.step = 0
        answer.tools = [{ name = "NoSuchTool", input = {} }]
        [[rule]]
        answer.text = "ok"
        "#,
    )
    .await;
    let run = stage.turn("go", &[]).await;
    assert_eq!(run.code, Some(0));
    let said = &run.tool_results()[0];
    assert!(
        said.contains("No such tool available: NoSuchTool"),
        "{said}"
    );
}

async fn long_answers_go_on(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        times = 1
        answer = { text = "cut off answ", stop_reason = "max_tokens" }
        [[rule]]
        answer.text = "done"
        "#,
    )
    .await;
    let run = stage.turn("go", &[]).await;
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "assistant/text",
            "user/text",
            "assistant/text",
            "result/success"
        ]
    );
    assert_eq!(run.result()["result"], "done");
}
