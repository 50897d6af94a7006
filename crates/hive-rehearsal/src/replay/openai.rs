//! What a model said over the chat completions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Said, input};
use crate::sse;

/// The calls of tools by their index: a name, and the pieces of its arguments.
type Calls = BTreeMap<u64, (String, String)>;

pub(super) fn said(body: &Value) -> Said {
    let mut said = Said::default();
    let mut calls = Calls::new();
    match body {
        Value::String(stream) => {
            for data in sse::data_of(stream) {
                if let Ok(chunk) = serde_json::from_str::<Value>(&data) {
                    take(&mut said, &mut calls, &chunk, "delta");
                }
            }
        }
        body => take(&mut said, &mut calls, body, "message"),
    }
    said.tools = calls
        .into_values()
        .map(|(name, pieces)| (name, input(&pieces)))
        .collect();
    said
}

fn take(said: &mut Said, calls: &mut Calls, object: &Value, key: &str) {
    let choice = &object["choices"][0];
    let part = &choice[key];
    let text = |key: &str| part[key].as_str().unwrap_or_default();
    said.text.push_str(text("content"));
    said.thinking.push_str(text("reasoning_content"));
    for (at, call) in part["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let index = call["index"].as_u64().unwrap_or(at as u64);
        let (name, pieces) = calls.entry(index).or_default();
        name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        pieces.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        let stop = match reason {
            "tool_calls" => "tool_use",
            "length" => "max_tokens",
            "content_filter" => "refusal",
            _ => "end_turn",
        };
        said.stop_reason = Some(stop.to_owned());
    }
    let usage = &object["usage"];
    let cached = usage["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .unwrap_or(0);
    if let (Some(prompt), Some(output)) = (
        usage["prompt_tokens"].as_u64(),
        usage["completion_tokens"].as_u64(),
    ) {
        said.usage = vec![
            ("input_tokens", prompt.saturating_sub(cached)),
            ("output_tokens", output),
            ("cache_read_tokens", cached),
        ];
    }
    if let Some(message) = object["error"]["message"].as_str() {
        let kind = object["error"]["type"].as_str().unwrap_or_default();
        said.error = Some((kind.to_owned(), message.to_owned()));
    }
}
