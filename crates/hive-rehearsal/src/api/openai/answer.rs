//! `POST /v1/chat/completions` in one piece.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    scenario::answer::StopReason,
    script::{Block, Reply},
    tokens::Usage,
};

pub(crate) fn whole(reply: &Reply) -> Value {
    let content = joined(reply, |block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    let thinking = joined(reply, |block| match block {
        Block::Thinking(text) => Some(text),
        _ => None,
    });
    if let Some(thinking) = thinking {
        message["reasoning_content"] = Value::String(thinking);
    }
    let calls: Vec<Value> = calls(reply)
        .map(|(_, id, name, input)| {
            json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            })
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let mut whole = head(reply, "chat.completion");
    whole["choices"] = json!([{
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": finish_reason(reply.stop),
    }]);
    whole["usage"] = usage(reply.usage);
    whole
}

/// What every object of an answer begins with.
pub(super) fn head(reply: &Reply, object: &str) -> Value {
    json!({
        "id": reply.ids.make("chatcmpl-", 0),
        "object": object,
        "created": Timestamp::now().as_second(),
        "model": reply.model,
        "system_fingerprint": "fp_rehearsal",
        "service_tier": "default",
    })
}

/// The calls of tools: their position among themselves, id, name and input.
pub(super) fn calls(reply: &Reply) -> impl Iterator<Item = (usize, String, &str, &Value)> {
    reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { name, input } => Some((name.as_str(), input)),
            Block::Thinking(_) | Block::Text(_) => None,
        })
        .enumerate()
        .map(|(at, (name, input))| (at, reply.ids.make("call_", at), name, input))
}

fn joined<'a>(reply: &'a Reply, part: impl Fn(&'a Block) -> Option<&'a String>) -> Option<String> {
    let texts: Vec<&str> = reply
        .blocks
        .iter()
        .filter_map(|block| part(block).map(String::as_str))
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

pub(super) fn usage(usage: Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_creation;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    })
}

pub(super) fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::PauseTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens | StopReason::ModelContextWindowExceeded => "length",
        StopReason::Refusal => "content_filter",
    }
}
