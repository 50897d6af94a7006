//! `POST /v1/messages` as a stream of events.

use serde_json::{Value, json};

use super::answer::{signature, stop_reason, usage};
use crate::{
    script::{Block, Reply},
    sse::{Data, Event, pieces},
};

pub(crate) fn events(reply: &Reply) -> Vec<Event> {
    let mut events = vec![start(reply)];
    for (index, block) in reply.blocks.iter().enumerate() {
        push_block(&mut events, reply, block, index);
        if index == 0 {
            // The real API pings once at the beginning, after the first block was announced.
            events.insert(2, event("ping", json!({"type": "ping"})));
        }
    }
    events.push(event(
        "message_delta",
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(reply.stop), "stop_sequence": null},
            "usage": usage(reply.usage, reply.usage.output),
        }),
    ));
    events.push(event("message_stop", json!({"type": "message_stop"})));
    events
}

fn start(reply: &Reply) -> Event {
    event(
        "message_start",
        json!({
            "type": "message_start",
            "message": {
                "id": reply.ids.make("msg_", 0),
                "type": "message",
                "role": "assistant",
                "model": reply.model,
                "content": [],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": usage(reply.usage, 1),
            },
        }),
    )
}

fn push_block(events: &mut Vec<Event>, reply: &Reply, block: &Block, index: usize) {
    let (announced, deltas) = match block {
        Block::Thinking(text) => {
            let mut deltas = in_pieces(reply, text, "thinking_delta", "thinking");
            let signature = signature(reply.ids, index);
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
            let announced = json!({"type": "thinking", "thinking": "", "signature": ""});
            (announced, deltas)
        }
        Block::Text(text) => (
            json!({"type": "text", "text": ""}),
            in_pieces(reply, text, "text_delta", "text"),
        ),
        Block::ToolUse { name, input } => {
            let id = reply.ids.make("toolu_", index);
            let announced = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let input = input.to_string();
            // The first piece of an input is always empty.
            let mut deltas = vec![json!({"type": "input_json_delta", "partial_json": ""})];
            deltas.extend(in_pieces(reply, &input, "input_json_delta", "partial_json"));
            (announced, deltas)
        }
    };
    events.push(event(
        "content_block_start",
        json!({"type": "content_block_start", "index": index, "content_block": announced}),
    ));
    for delta in deltas {
        events.push(Event {
            is_content: true,
            ..event(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            )
        });
    }
    events.push(event(
        "content_block_stop",
        json!({"type": "content_block_stop", "index": index}),
    ));
}

fn in_pieces(reply: &Reply, text: &str, kind: &str, key: &str) -> Vec<Value> {
    pieces(text, reply.pace.chunk_chars.0)
        .into_iter()
        .map(|piece| json!({"type": kind, key: piece}))
        .collect()
}

fn event(name: &'static str, data: Value) -> Event {
    Event {
        name: Some(name),
        data: Data::Json(data),
        is_content: false,
    }
}
