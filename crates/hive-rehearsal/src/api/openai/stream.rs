//! `POST /v1/chat/completions` as a stream of chunks.

use serde_json::{Value, json};

use super::answer::{calls, finish_reason, head, usage};
use crate::{
    script::{Block, Reply},
    sse::{Data, Event, pieces},
};

pub(crate) fn events(reply: &Reply) -> Vec<Event> {
    let base = base(reply);
    let chunk = |delta: Value, finish: Option<&str>, is_content: bool| {
        let mut chunk = base.clone();
        chunk["choices"] =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        Event {
            name: None,
            data: Data::Json(chunk),
            is_content,
        }
    };
    let first = json!({"role": "assistant", "content": "", "refusal": null});
    let mut events = vec![chunk(first, None, false)];
    for delta in deltas(reply) {
        events.push(chunk(delta, None, true));
    }
    events.push(chunk(json!({}), Some(finish_reason(reply.stop)), false));
    if reply.wants_usage {
        let mut last = base.clone();
        last["choices"] = json!([]);
        last["usage"] = usage(reply.usage);
        events.push(Event {
            name: None,
            data: Data::Json(last),
            is_content: false,
        });
    }
    events.push(Event {
        name: None,
        data: Data::Raw("[DONE]"),
        is_content: false,
    });
    events
}

/// With usage asked for, every chunk has the key, and all but the last have it empty.
fn base(reply: &Reply) -> Value {
    let mut base = head(reply, "chat.completion.chunk");
    if reply.wants_usage {
        base["usage"] = Value::Null;
    }
    base
}

fn deltas(reply: &Reply) -> Vec<Value> {
    let size = reply.pace.chunk_chars.0;
    let mut deltas = Vec::new();
    for block in &reply.blocks {
        let (key, text) = match block {
            Block::Thinking(text) => ("reasoning_content", text),
            Block::Text(text) => ("content", text),
            Block::ToolUse { .. } => continue,
        };
        deltas.extend(
            pieces(text, size)
                .into_iter()
                .map(|piece| json!({key: piece})),
        );
    }
    for (at, id, name, input) in calls(reply) {
        let function = json!({"name": name, "arguments": ""});
        let announced = json!({"index": at, "id": id, "type": "function", "function": function});
        deltas.push(json!({"tool_calls": [announced]}));
        for piece in pieces(&input.to_string(), size) {
            let part = json!({"index": at, "function": {"arguments": piece}});
            deltas.push(json!({"tool_calls": [part]}));
        }
    }
    deltas
}
