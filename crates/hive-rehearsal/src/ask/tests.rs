use serde_json::json;

use super::*;

fn anthropic(body: &Value) -> Ask {
    Ask::read(Api::Anthropic, body, body.to_string().len())
}

#[test]
fn the_last_text_block_counts_and_reminders_do_not() {
    let reminder = json!({"type":"text","text":"<system-reminder>\nx\n</system-reminder>\n"});
    let table = [
        (json!([{"role":"user","content":"plain"}]), "plain", 0),
        (
            json!([{"role":"user","content":[reminder, {"type":"text","text":"failed"},
                {"type":"text","text":"again"}]}]),
            "again",
            0,
        ),
        (
            json!([{"role":"user","content":[{"type":"text","text":"go"}, reminder]}]),
            "go",
            0,
        ),
        (
            json!([
                {"role":"user","content":"go"},
                {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}, reminder]},
                {"role":"system","content":"a note"},
            ]),
            "go",
            1,
        ),
        (json!([]), "", 0),
        (json!("nonsense"), "", 0),
    ];
    for (messages, text, step) in table {
        let ask = anthropic(&json!({"model":"m","messages":messages}));
        assert_eq!(
            (ask.last_user.as_str(), ask.step),
            (text, step),
            "{messages}"
        );
    }
}

#[test]
fn only_the_newest_tool_results_are_seen() {
    let ask = anthropic(&json!({"messages":[
        {"role":"user","content":"go"},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"old"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"b","name":"Read","input":{}}]},
        {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"b","is_error":true,
             "content":[{"type":"text","text":"new\n\n<system-reminder>\nx\n</system-reminder>"},{"type":"image"}]}]},
    ]}));
    let new = ToolResult {
        text: "new".into(),
        is_error: true,
    };
    assert_eq!(ask.tool_results, [new]);
    assert_eq!(ask.step, 2);
}

#[test]
fn purposes_are_told_apart() {
    let tools = json!([{"name":"Read"}]);
    let summary = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";
    let older = "Hi. Your task is to create a detailed summary of the conversation so far";
    let title = "Generate a concise, sentence-case title (3-7 words)";
    let table = [
        (json!("hi"), "", json!(tools), 100, Purpose::Turn),
        (json!(summary), "", json!(tools), 100, Purpose::Summary),
        (json!(older), "", json!([]), 100, Purpose::Summary),
        (
            json!("please create a detailed summary of a.txt"),
            "",
            json!(tools),
            100,
            Purpose::Turn,
        ),
        (json!("hi"), title, json!([]), 100, Purpose::Side),
        (json!("hi"), title, json!(tools), 100, Purpose::Turn),
        (json!("quota"), "", json!([]), 1, Purpose::Side),
    ];
    for (content, system, tools, max_tokens, purpose) in table {
        let ask = anthropic(
            &json!({"system":system,"tools":tools,"max_tokens":max_tokens,
            "messages":[{"role":"user","content":content}]}),
        );
        assert_eq!(ask.purpose, purpose, "{content} {system}");
    }
}

#[test]
fn the_working_directory_is_found_where_the_cli_puts_it() {
    let reminder = "<system-reminder>\n# Environment\n - Primary working directory: /state\n - x\n</system-reminder>";
    let in_message =
        json!({"messages":[{"role":"user","content":[{"type":"text","text":reminder}]}]});
    let in_system = json!({"system":"Working directory: /other\n","messages":[]});
    assert_eq!(anthropic(&in_message).cwd.as_deref(), Some("/state"));
    assert_eq!(anthropic(&in_system).cwd.as_deref(), Some("/other"));
    assert_eq!(anthropic(&json!({"messages":[]})).cwd, None);
}

#[test]
fn the_other_api_is_read_into_the_same() {
    let body = json!({
        "model":"gpt-x","stream":true,"stream_options":{"include_usage":true},
        "messages":[
            {"role":"developer","content":"be brief"},
            {"role":"user","content":[{"type":"text","text":"go"}]},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"c","type":"function","function":{"name":"Read","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c","content":"result"},
        ],
        "tools":[{"type":"function","function":{"name":"Read","parameters":{}}}],
    });
    let ask = Ask::read(Api::OpenAi, &body, 400);
    assert!(ask.is_streamed && ask.wants_usage && ask.offers("Read"));
    assert_eq!(
        (ask.system.as_str(), ask.last_user.as_str(), ask.step),
        ("be brief", "go", 1)
    );
    assert_eq!(ask.tool_results[0].text, "result");
    assert_eq!(ask.size.total, 400);
}

#[test]
fn the_seed_follows_the_conversation() {
    let say = |text| anthropic(&json!({"messages":[{"role":"user","content":text}]})).seed;
    assert_eq!(say("a"), say("a"));
    assert_ne!(say("a"), say("b"));
}
