//! Reading `POST /v1/chat/completions`.

use serde_json::Value;

use super::{Message, Parts, Role, ToolResult, names, texts};

pub(super) fn read(body: &Value) -> Parts {
    let all = body["messages"].as_array();
    let messages: Vec<Message> = all.into_iter().flatten().map(message).collect();
    Parts {
        system: messages
            .iter()
            .filter(|message| message.role == Role::System)
            .flat_map(|message| message.texts.iter().cloned())
            .collect(),
        messages,
        tools: names(&body["tools"], |tool| tool["function"]["name"].as_str()),
        wants_usage: body["stream_options"]["include_usage"]
            .as_bool()
            .unwrap_or(false),
        wants_json: body["response_format"]["type"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("json")),
        // Servers that think over this API send it unasked.
        wants_thinking: true,
        max_tokens: body["max_completion_tokens"]
            .as_u64()
            .or_else(|| body["max_tokens"].as_u64()),
    }
}

fn message(message: &Value) -> Message {
    let texts = texts(&message["content"]);
    let (role, texts, results) = match message["role"].as_str() {
        Some("assistant") => (Role::Assistant, texts, Vec::new()),
        Some("system" | "developer") => (Role::System, texts, Vec::new()),
        // The results of tools are messages of their own here, and carry no mark of failure.
        Some("tool") => {
            let result = ToolResult {
                text: texts.join("\n"),
                is_error: false,
            };
            (Role::User, Vec::new(), vec![result])
        }
        _ => (Role::User, texts, Vec::new()),
    };
    Message {
        role,
        texts,
        results,
    }
}
