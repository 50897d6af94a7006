//! The chat completions, byte by byte.

use serde_json::{Value, json};

use super::client::{post, post_streaming, request, start};

const PATH: &str = "/v1/chat/completions";

fn chat(text: &str) -> Value {
    json!({"model": "gpt-test", "messages": [{"role": "user", "content": text}]})
}

const RULE: &str = r#"
[[rule]]
[rule.answer]
thinking = "hm"
text = "hello {{last_user}}"
chunk_chars = 4
usage = { input_tokens = 100, output_tokens = 7, cache_read_tokens = 20 }
tools = [{ name = "Read", input = { path = "a" } }, { name = "Write" }]
"#;

#[tokio::test]
async fn a_stream_is_chunks_usage_and_done() {
    let model = start(RULE).await;
    let mut body = chat("ada");
    body["stream_options"] = json!({"include_usage": true});
    let answer = post_streaming(&model, PATH, &body).await;
    assert!(answer.headers.contains_key("x-request-id"));
    let events = answer.events();
    let chunks: Vec<&Value> = events.iter().map(|(_, data)| data).collect();
    let (done, chunks) = chunks.split_last().unwrap();
    assert_eq!(**done, json!("[DONE]"));
    let (usage, chunks) = chunks.split_last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["prompt_tokens"], 120);
    assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 20);
    let deltas: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"])
        .collect();
    assert_eq!(deltas[0]["role"], "assistant");
    let text: String = deltas
        .iter()
        .filter_map(|delta| delta["content"].as_str())
        .collect();
    assert_eq!(text, "hello ada");
    let calls: Vec<&Value> = deltas
        .iter()
        .map(|d| &d["tool_calls"][0])
        .filter(|c| c.is_object())
        .collect();
    let names: Vec<&Value> = calls
        .iter()
        .map(|call| &call["function"]["name"])
        .filter(|n| n.is_string())
        .collect();
    assert_eq!(names, ["Read", "Write"]);
    let arguments: String = calls
        .iter()
        .filter(|call| call["index"] == 0)
        .filter_map(|call| call["function"]["arguments"].as_str())
        .collect();
    assert_eq!(arguments, r#"{"path":"a"}"#);
    for chunk in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["usage"], Value::Null);
    }
    assert_eq!(
        chunks[chunks.len() - 1]["choices"][0]["finish_reason"],
        "tool_calls"
    );
    model.stop().await;
}

#[tokio::test]
async fn usage_comes_only_when_asked_for() {
    let model = start(RULE).await;
    let answer = post_streaming(&model, PATH, &chat("x")).await;
    assert!(!answer.body.contains("usage"), "{}", answer.body);
    model.stop().await;
}

#[tokio::test]
async fn an_answer_in_one_piece() {
    let model = start(RULE).await;
    let whole = post(&model, PATH, &chat("ada")).await.json();
    let message = &whole["choices"][0]["message"];
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(message["content"], "hello ada");
    assert_eq!(message["reasoning_content"], "hm");
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"],
        r#"{"path":"a"}"#
    );
    assert_eq!(whole["usage"]["total_tokens"], 127);
    model.stop().await;
}

#[tokio::test]
async fn errors_are_in_the_words_of_this_api() {
    let table = [
        ("prompt_too_long", 400, "context_length_exceeded"),
        ("credit", 429, "insufficient_quota"),
        ("unauthorized", 401, "invalid_api_key"),
        ("model_not_found", 404, "model_not_found"),
        ("rate_limit", 429, "rate_limit_exceeded"),
    ];
    for (kind, status, code) in table {
        let model = start(&format!("[[rule]]\nfault = '{kind}'")).await;
        let answer = post(&model, PATH, &chat("x")).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &json!(code))
        );
        model.stop().await;
    }
    let model = start("").await;
    let answer = request(model.port(), "POST", PATH, "", &chat("x").to_string())
        .await
        .unwrap();
    assert_eq!(answer.status, 401);
    let list = request(
        model.port(),
        "GET",
        "/v1/models",
        "authorization: Bearer x\r\n",
        "",
    )
    .await;
    assert_eq!(list.unwrap().json()["object"], "list");
    model.stop().await;
}
