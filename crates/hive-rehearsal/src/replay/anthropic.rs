//! What a model said over the Messages API.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Said, input};
use crate::sse;

pub(super) fn said(body: &Value) -> Said {
    match body {
        Value::String(stream) => streamed(stream),
        body => whole(body),
    }
}

fn whole(body: &Value) -> Said {
    let mut said = Said {
        stop_reason: body["stop_reason"].as_str().map(str::to_owned),
        ..Said::default()
    };
    take_usage(&mut said, &body["usage"]);
    for block in body["content"].as_array().into_iter().flatten() {
        take_block(&mut said, block, block["input"].clone());
    }
    said
}

/// A block that is being streamed, and the pieces of its input.
type Open = (Value, String);

fn streamed(stream: &str) -> Said {
    let mut said = Said::default();
    let mut blocks: BTreeMap<u64, Open> = BTreeMap::new();
    for data in sse::data_of(stream) {
        let Ok(event) = serde_json::from_str::<Value>(&data) else {
            continue;
        };
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str() {
            Some("message_start") => take_usage(&mut said, &event["message"]["usage"]),
            Some("content_block_start") => {
                blocks.insert(index, (event["content_block"].clone(), String::new()));
            }
            Some("content_block_delta") => {
                if let Some(open) = blocks.get_mut(&index) {
                    extend(open, &event["delta"]);
                }
            }
            Some("message_delta") => {
                said.stop_reason = event["delta"]["stop_reason"].as_str().map(str::to_owned);
                take_usage(&mut said, &event["usage"]);
            }
            Some("error") => {
                let text = |key: &str| event["error"][key].as_str().unwrap_or_default().to_owned();
                said.error = Some((text("type"), text("message")));
            }
            _ => {}
        }
    }
    for (block, pieces) in blocks.into_values() {
        take_block(&mut said, &block, input(&pieces));
    }
    said
}

fn extend((block, pieces): &mut Open, delta: &Value) {
    for key in ["text", "thinking"] {
        if let (Some(piece), Value::String(text)) = (delta[key].as_str(), &mut block[key]) {
            text.push_str(piece);
        }
    }
    pieces.push_str(delta["partial_json"].as_str().unwrap_or_default());
}

fn take_block(said: &mut Said, block: &Value, input: Value) {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match block["type"].as_str() {
        Some("text") => said.text.push_str(text("text")),
        Some("thinking") => said.thinking.push_str(text("thinking")),
        Some("tool_use") => said.tools.push((text("name").to_owned(), input)),
        _ => {}
    }
}

/// The last number of each kind counts.
fn take_usage(said: &mut Said, usage: &Value) {
    for (key, name) in [
        ("input_tokens", "input_tokens"),
        ("output_tokens", "output_tokens"),
        ("cache_read_tokens", "cache_read_input_tokens"),
        ("cache_creation_tokens", "cache_creation_input_tokens"),
    ] {
        if let Some(tokens) = usage[name].as_u64() {
            said.usage.retain(|(known, _)| *known != key);
            said.usage.push((key, tokens));
        }
    }
}
