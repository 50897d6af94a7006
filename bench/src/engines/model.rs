//! The scripted model in every shape that an engine asks in. It answers at once: first with a call
//! that reads the file, then with what the file says.

use anyhow::Result;
use axum::{
    Json, Router,
    extract::Request,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};
use hive_rehearsal::{Rehearsal, Scenario};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

/// What is in the file.
pub(super) const NOTE: &str = "The heron stands in the reeds.\n";
/// What the model says in the end.
pub(super) const ANSWER: &str = "The note speaks of a heron.";

/// The script, for what asks in the shape of the Messages API.
const SCRIPT: &str = "[[rule]]\nwhen.step = 0\n\
    answer.tools = [{ name = 'Read', input = { file_path = '{{cwd}}/note.txt' } }]\n\
    [[rule]]\nanswer.text = 'The note speaks of a heron.'\n";

/// The model's servers, for as long as this is held.
#[derive(Debug)]
pub(super) struct Model {
    messages: Rehearsal,
    other: String,
    _serving: JoinSet<()>,
}

impl Model {
    pub(super) async fn start() -> Result<Self> {
        let messages = Rehearsal::start(Scenario::parse("bench.toml", SCRIPT)?).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let other = format!("http://{}", listener.local_addr()?);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let router = Router::new().fallback(answer);
            // It ends with the benchmark.
            axum::serve(listener, router).await.ok();
        });
        Ok(Self {
            messages,
            other,
            _serving: serving,
        })
    }

    /// Where the Messages API is.
    pub(super) fn messages_url(&self) -> String {
        self.messages.url()
    }

    /// Where the Responses API and that of Gemini are.
    pub(super) fn other_url(&self) -> String {
        self.other.clone()
    }
}

async fn answer(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 64 << 20).await;
    let body: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    if path.ends_with("/responses") {
        stream(&responses(&body))
    } else if path.ends_with(":streamGenerateContent") {
        stream(&[gemini(&body)])
    } else if path.ends_with(":generateContent") {
        Json(gemini(&body)).into_response()
    } else {
        Json(json!({"models": [], "data": [], "totalTokens": 1})).into_response()
    }
}

fn stream(events: &[Value]) -> Response {
    let text: String = events
        .iter()
        .map(|event| match event["type"].as_str() {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    ([(CONTENT_TYPE, "text/event-stream")], text).into_response()
}

/// The Responses API: whatever tool runs commands reads the file.
fn responses(request: &Value) -> Vec<Value> {
    let input = request["input"].as_array();
    let last = input.and_then(|items| items.last()).unwrap_or(&Value::Null);
    let has_read = last["type"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("_output"));
    let tools = request["tools"].as_array().into_iter().flatten();
    let mut names = tools.filter_map(|tool| tool["name"].as_str());
    let item = if has_read {
        let content = json!([{"type": "output_text", "text": ANSWER, "annotations": []}]);
        json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": content})
    } else if names.any(|name| name == "exec_command") {
        call("exec_command", &json!({"cmd": "cat note.txt"}))
    } else {
        call("shell", &json!({"command": ["cat", "note.txt"]}))
    };
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0}});
    let response = json!({"id": "r", "object": "response", "status": "completed",
        "output": [item], "usage": usage});
    vec![
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ]
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": "f", "call_id": "c", "name": name,
        "arguments": arguments.to_string(), "status": "completed"})
}

/// The API of Gemini.
fn gemini(request: &Value) -> Value {
    let contents = request["contents"].as_array();
    let last = contents
        .and_then(|items| items.last())
        .unwrap_or(&Value::Null);
    let parts = last["parts"].as_array().into_iter().flatten();
    let has_read = parts
        .into_iter()
        .any(|part| part["functionResponse"].is_object());
    let part = if has_read {
        json!({"text": ANSWER})
    } else {
        let args = json!({"file_path": "note.txt", "absolute_path": "note.txt"});
        json!({"functionCall": {"name": "read_file", "args": args}})
    };
    json!({"candidates": [{"index": 0, "finishReason": "STOP",
        "content": {"role": "model", "parts": [part]}}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10,
        "totalTokenCount": 110}})
}
