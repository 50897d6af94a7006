//! The Messages API, byte by byte.

use serde_json::{Value, json};

use super::client::{messages, post, post_streaming, prompt, request, start};

const BOTH: &str = r#"
[[rule]]
[rule.answer]
thinking = "hm, let me see"
text = "Grüße, {{last_user}}"
chunk_chars = 4
usage = { input_tokens = 100, output_tokens = 7, cache_read_tokens = 20 }
tools = [
  { name = "Read", input = { file_path = "/etc/hostname" } },
  { name = "Bash", input = {} },
]
"#;

fn thinking(text: &str) -> Value {
    let mut body = prompt(text);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    body
}

#[tokio::test]
async fn a_stream_has_every_event_of_the_real_one_in_order() {
    let model = start(BOTH).await;
    let answer = post_streaming(&model, "/v1/messages?beta=true", &thinking("ada")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers["content-type"],
        "text/event-stream; charset=utf-8"
    );
    assert!(answer.headers["request-id"].starts_with("req_01"));
    assert!(answer.is_complete);
    let events = answer.events();
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let block = [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ];
    let mut expected = vec!["message_start", "content_block_start", "ping"];
    expected.extend(&block[1..]);
    for _ in 1..4 {
        expected.extend(block);
    }
    expected.extend(["message_delta", "message_stop"]);
    assert_eq!(names, expected);
    for (name, data) in &events {
        assert_eq!(&data["type"], name, "the name is also in the data");
    }
    model.stop().await;
}

#[tokio::test]
async fn the_pieces_of_a_stream_join_to_the_whole_answer() {
    let model = start(BOTH).await;
    let streamed = post_streaming(&model, "/v1/messages", &thinking("ada")).await;
    let whole = post(&model, "/v1/messages", &thinking("ada")).await.json();
    let events = streamed.events();
    let joined = |index: u64, key: &str| -> String {
        let deltas = events.iter().filter(|(_, data)| data["index"] == index);
        deltas
            .filter_map(|(_, data)| data["delta"][key].as_str())
            .collect()
    };
    assert_eq!(joined(0, "thinking"), "hm, let me see");
    assert!(!joined(0, "signature").is_empty());
    assert_eq!(joined(1, "text"), "Grüße, ada");
    assert_eq!(
        joined(2, "partial_json"),
        r#"{"file_path":"/etc/hostname"}"#
    );
    assert_eq!(joined(3, "partial_json"), "{}");

    assert_eq!(whole["content"][0]["thinking"], "hm, let me see");
    assert_eq!(
        whole["content"][1],
        json!({"type": "text", "text": "Grüße, ada"})
    );
    assert_eq!(whole["content"][2]["input"]["file_path"], "/etc/hostname");
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["model"], "claude-test");
    assert_ne!(whole["content"][2]["id"], whole["content"][3]["id"]);
    let (_, end) = &events[events.len() - 2];
    for usage in [&whole["usage"], &end["usage"]] {
        assert_eq!(usage["input_tokens"], 100);
        assert_eq!(usage["output_tokens"], 7);
        assert_eq!(usage["cache_read_input_tokens"], 20);
    }
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    model.stop().await;
}

#[tokio::test]
async fn tokens_grow_with_the_conversation() {
    let model = start("[[rule]]\nanswer.text = 'ok'").await;
    let mut sizes = Vec::new();
    for words in [10, 1_000, 10_000] {
        let body = prompt(&"word ".repeat(words));
        let usage = post(&model, "/v1/messages", &body).await.json()["usage"].clone();
        sizes.push(usage["input_tokens"].as_u64().unwrap());
        let counted = post(&model, "/v1/messages/count_tokens", &body)
            .await
            .json();
        assert_eq!(counted["input_tokens"], sizes[sizes.len() - 1]);
    }
    assert!(sizes.is_sorted() && sizes[2] > 10_000, "{sizes:?}");
    model.stop().await;
}

#[tokio::test]
async fn models_are_listed_and_found() {
    let model = start("models = ['claude-a', 'claude-b']").await;
    let get = |path: &'static str| {
        let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
        let port = model.port();
        async move { request(port, "GET", path, headers, "").await.unwrap() }
    };
    let list = get("/v1/models?limit=10").await.json();
    assert_eq!(list["data"][1]["id"], "claude-b");
    assert_eq!(
        (&list["first_id"], &list["has_more"]),
        (&json!("claude-a"), &json!(false))
    );
    assert_eq!(get("/v1/models/claude-a").await.json()["type"], "model");
    let missing = get("/v1/models/claude-c").await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json()["error"]["type"], "not_found_error");
    let mut body = prompt("x");
    body["model"] = json!("claude-c");
    let missing = post(&model, "/v1/messages", &body).await;
    assert_eq!(
        (missing.status, missing.json()["error"]["message"].clone()),
        (404, json!("model: claude-c"))
    );
    model.stop().await;
}

#[tokio::test]
async fn what_the_real_api_refuses_is_refused_in_its_words() {
    let model = start("[[rule]]\nanswer.text = 'ok'").await;
    let port = model.port();
    let key = "x-api-key: k\r\n";
    let full = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
    let good = prompt("x").to_string();
    let orphan = messages(&json!([{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_x", "content": "y"}]}]))
    .to_string();
    let bad = (400, "invalid_request_error");
    #[rustfmt::skip]
    let table = [
        ("POST", "/v1/messages", "", good.as_str(), (401, "authentication_error")),
        ("POST", "/v1/messages", key, &good, bad),
        ("POST", "/v1/messages", full, "{", bad),
        ("POST", "/v1/messages", full, "[1]", bad),
        ("POST", "/v1/messages", full, &orphan, bad),
        ("GET", "/v1/messages", full, "", (405, "invalid_request_error")),
        ("POST", "/v1/nothing", full, &good, (404, "not_found_error")),
        ("POST", "/v1/messages/count_tokens", full, "{", bad),
    ];
    for (method, path, headers, body, (status, kind)) in table {
        let answer = request(port, method, path, headers, body).await.unwrap();
        assert_eq!(answer.status, status, "{method} {path} {body}");
        let error = answer.json();
        assert_eq!(
            (&error["type"], &error["error"]["type"]),
            (&json!("error"), &json!(kind))
        );
        assert_eq!(error["request_id"], answer.headers["request-id"]);
    }
    assert!(
        model.requests().is_empty(),
        "none of these was for the script"
    );
    model.stop().await;
}

#[tokio::test]
async fn greetings_are_answered() {
    let model = start("").await;
    for (method, path) in [("HEAD", "/"), ("HEAD", "/api/hello"), ("GET", "/api/hello")] {
        let answer = request(model.port(), method, path, "", "").await.unwrap();
        assert_eq!(answer.status, 200, "{method} {path}");
    }
    model.stop().await;
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused() {
    let model = start("").await;
    let body = "x".repeat(41 * 1024 * 1024);
    // The server may end the connection while the client still writes.
    match request(
        model.port(),
        "POST",
        "/v1/messages",
        "x-api-key: k\r\n",
        &body,
    )
    .await
    {
        Ok(answer) => assert_eq!(answer.json()["error"]["type"], "request_too_large"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    let answer = post(&model, "/v1/messages", &prompt("still there?")).await;
    assert_eq!(answer.status, 200);
    model.stop().await;
}
