//! The request: our conversation in the words of chat completions.

use serde_json::{Value, json};

use crate::{Block, Message, Request, ResultContent, Role, Source};

/// The body of a request.
pub(super) fn body(request: &Request, is_openai: bool) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        match message.role {
            Role::User => push_user(message, &mut messages),
            Role::Assistant => messages.push(assistant(message)),
        }
    }
    let limit = if is_openai {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    body[limit] = json!(request.max_tokens);
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }})
            })
            .collect();
    }
    body
}

/// Results become messages of their own; pictures inside them follow as the user's, since a result
/// can only be text.
fn push_user(message: &Message, messages: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult {
                tool_use_id,
                content,
                ..
            } => {
                let mut text = content.text();
                if let ResultContent::Blocks(blocks) = content {
                    let pictures: Vec<_> = blocks.iter().filter_map(picture).collect();
                    if !pictures.is_empty() {
                        text.push_str("\n(the picture follows)");
                        parts.extend(pictures);
                    }
                }
                messages
                    .push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": text}));
            }
            Block::Text { text, .. } => parts.push(json!({"type": "text", "text": text})),
            other => parts.extend(picture(other)),
        }
    }
    let is_plain = parts.iter().all(|part| part["type"] == "text");
    if is_plain && !parts.is_empty() {
        let text: Vec<_> = parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        messages.push(json!({"role": "user", "content": text.join("\n\n")}));
    } else if !parts.is_empty() {
        messages.push(json!({"role": "user", "content": parts}));
    }
}

fn picture(block: &Block) -> Option<Value> {
    match block {
        Block::Image {
            source: Source::Base64 { media_type, data },
        } => Some(json!({
            "type": "image_url",
            "image_url": {"url": format!("data:{media_type};base64,{data}")},
        })),
        Block::Document {
            source: Source::Base64 { media_type, data },
        } => Some(json!({
            "type": "file",
            "file": {"filename": "document.pdf", "file_data": format!("data:{media_type};base64,{data}")},
        })),
        _ => None,
    }
}

fn assistant(message: &Message) -> Value {
    let calls: Vec<Value> = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse {
                id, name, input, ..
            } => Some(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            })),
            _ => None,
        })
        .collect();
    let mut value = json!({"role": "assistant", "content": message.text()});
    if !calls.is_empty() {
        value["tool_calls"] = Value::Array(calls);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Thinking;

    #[test]
    fn history_is_translated() {
        let request = Request {
            model: "m".into(),
            system: "s".into(),
            messages: vec![
                Message::user("q"),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Thinking {
                            thinking: "t".into(),
                            signature: String::new(),
                        },
                        Block::text("a"),
                        Block::tool_use("c", "Read", json!({"p":1})),
                    ],
                },
                Message {
                    role: Role::User,
                    content: vec![
                        Block::tool_result(
                            "c",
                            ResultContent::Blocks(vec![
                                Block::text("seen"),
                                Block::Image {
                                    source: Source::Base64 {
                                        media_type: "image/png".into(),
                                        data: "AA".into(),
                                    },
                                },
                            ]),
                            false,
                        ),
                        Block::text("go on"),
                    ],
                },
            ],
            tools: vec![],
            max_tokens: 7,
            thinking: Thinking::Off,
        };
        let body = body(&request, false);
        let roles: Vec<_> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["role"].clone())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
        assert_eq!(
            body["messages"][2]["tool_calls"][0]["function"]["arguments"],
            "{\"p\":1}"
        );
        assert_eq!(
            body["messages"][4]["content"][0]["image_url"]["url"],
            "data:image/png;base64,AA"
        );
        assert_eq!(body["max_tokens"], 7);
        assert_eq!(super::body(&request, true)["max_completion_tokens"], 7);
    }
}
