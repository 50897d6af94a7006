use serde_json::json;

use super::*;
use crate::scenario::Scenario;

fn entry(number: u64, path: &str, prompt: &str, response: &Value) -> String {
    let entry = json!({
        "schema": 1, "number": number, "at": "", "method": "POST", "path": path, "headers": {},
        "body": {"model": "m", "messages": [{"role": "user", "content": prompt}]},
        "response": response,
    });
    format!("{entry}\n")
}

fn ok(body: Value) -> Value {
    json!({"status": 200, "headers": {}, "body": body, "is_complete": true})
}

#[test]
fn a_recording_becomes_a_scenario_that_can_be_played() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"use {{\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x}}\"}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"name\":\"Read\",\"input\":{}}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":[1,null],\\\"b\\\":null}\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\n";
    let limited = json!({
        "status": 429, "headers": {"retry-after": "7", "date": "x"}, "is_complete": true,
        "body": {"error": {"type": "rate_limit_error", "message": "slow down"}},
    });
    let cut = json!({"status": 200, "headers": {}, "body": "", "is_complete": false});
    let chat = ok(json!({
        "choices": [{"message": {"content": "hi"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2,
                  "prompt_tokens_details": {"cached_tokens": 4}},
    }));
    let recording = [
        entry(1, "/v1/messages?beta=true", "one", &ok(json!(stream))),
        entry(2, "/v1/messages", "two", &limited),
        entry(
            3,
            "/v1/messages/count_tokens",
            "three",
            &ok(json!({"input_tokens": 1})),
        ),
        entry(4, "/v1/messages", "four", &cut),
        entry(5, "/v1/chat/completions", "five", &chat),
        "\n".to_owned(),
    ]
    .concat();
    let text = scenario(recording.as_bytes()).unwrap();
    let played = Scenario::parse("replay", &text).unwrap();
    let names: Vec<_> = played.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(
        names,
        ["recorded 1", "recorded 2", "recorded 4", "recorded 5"],
        "{text}"
    );
    for part in [
        "equals = \"one\"",
        "use {{\"{{\"}}x}}",
        "a = [1]",
        "output_tokens = 5",
        "retry-after = \"7\"",
        "error_type = \"rate_limit_error\"",
        "kind = \"cut\"",
        "stop_reason = \"max_tokens\"",
        "cache_read_tokens = 4",
    ] {
        assert!(
            text.contains(part) || text.contains(&part.replace('"', "'")),
            "{part}\n{text}"
        );
    }
}

#[test]
fn what_is_no_recording_is_told_with_its_line() {
    let error = scenario(&b"\n{}\n"[..]).unwrap_err();
    assert!(
        format!("{error:#}").contains("line 2 is no line of a recording"),
        "{error:#}"
    );
    let error = scenario(&b""[..]).unwrap_err();
    assert!(
        error.to_string().contains("hive-rehearsal record"),
        "{error}"
    );
}
