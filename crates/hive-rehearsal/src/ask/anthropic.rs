//! Reading `POST /v1/messages`.

use serde_json::Value;

use super::{Message, Parts, Role, ToolResult, names, texts, without_reminders};

pub(super) fn read(body: &Value) -> Parts {
    let messages = body["messages"].as_array();
    Parts {
        system: texts(&body["system"]),
        messages: messages.into_iter().flatten().map(message).collect(),
        tools: names(&body["tools"], |tool| tool["name"].as_str()),
        wants_usage: false,
        wants_json: body["output_config"]["format"].is_object()
            || body["output_format"].is_object(),
        wants_thinking: matches!(
            body["thinking"]["type"].as_str(),
            Some("enabled" | "adaptive")
        ),
        max_tokens: body["max_tokens"].as_u64(),
    }
}

fn message(message: &Value) -> Message {
    let content = &message["content"];
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    Message {
        role: match message["role"].as_str() {
            Some("assistant") => Role::Assistant,
            // Newer models get system items between the messages.
            Some("system") => Role::System,
            _ => Role::User,
        },
        texts: texts(content),
        results: blocks
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| ToolResult {
                text: without_reminders(&texts(&block["content"]).join("\n")),
                is_error: block["is_error"].as_bool().unwrap_or(false),
            })
            .collect(),
    }
}
