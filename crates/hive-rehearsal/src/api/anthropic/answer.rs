//! `POST /v1/messages` in one piece.

use serde_json::{Value, json};

use crate::{
    ids::Ids,
    scenario::answer::StopReason,
    script::{Block, Reply},
    tokens::Usage,
};

pub(crate) fn whole(reply: &Reply) -> Value {
    let content: Vec<Value> = reply
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| content(block, index, reply.ids))
        .collect();
    json!({
        "id": reply.ids.make("msg_", 0),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason(reply.stop),
        "stop_sequence": null,
        "usage": usage(reply.usage, reply.usage.output),
    })
}

fn content(block: &Block, index: usize, ids: Ids) -> Value {
    match block {
        Block::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": signature(ids, index)})
        }
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::ToolUse { name, input } => {
            json!({"type": "tool_use", "id": ids.make("toolu_", index), "name": name, "input": input})
        }
    }
}

/// What proves to the real API that it thought this itself; opaque to everybody else.
pub(super) fn signature(ids: Ids, index: usize) -> String {
    format!("{}{}==", ids.make("Er", index), ids.make("cb", index))
}

pub(super) fn usage(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}

pub(super) fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal => "refusal",
        StopReason::PauseTurn => "pause_turn",
        StopReason::ModelContextWindowExceeded => "model_context_window_exceeded",
    }
}
