//! What a model says while it says it, and the message that it adds up to.
//!
//! The events are those of the Anthropic stream; the OpenAI dialect produces the same ones, so that
//! nothing after the dialect knows which provider answered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Block, Usage};

/// One step of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The answer begins.
    MessageStart {
        /// Its head; no content yet.
        message: MessageHead,
    },
    /// A block begins.
    ContentBlockStart {
        /// Its place in the message.
        index: u32,
        /// The block, still empty.
        content_block: Block,
    },
    /// A block grows.
    ContentBlockDelta {
        /// Which one.
        index: u32,
        /// By what.
        delta: BlockDelta,
    },
    /// A block is whole.
    ContentBlockStop {
        /// Which one.
        index: u32,
    },
    /// Why it stopped, and the final counts.
    MessageDelta {
        /// Why it stopped.
        delta: MessageDelta,
        /// The final counts.
        #[serde(default)]
        usage: Usage,
    },
    /// The answer is whole.
    MessageStop,
    /// A sign of life.
    Ping,
    /// The provider failed in the middle.
    Error {
        /// What it says.
        error: StreamFault,
    },
}

/// The head of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageHead {
    /// The provider's id.
    #[serde(default)]
    pub id: String,
    /// The model that answers.
    #[serde(default)]
    pub model: String,
    /// The counts so far.
    #[serde(default)]
    pub usage: Usage,
    /// Whatever else is there (`type`, `role`, …).
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How a block grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockDelta {
    /// More text.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// More of a tool's arguments.
    InputJsonDelta {
        /// A piece of JSON text.
        partial_json: String,
    },
    /// More thought.
    ThinkingDelta {
        /// The piece.
        thinking: String,
    },
    /// The signature of a thought.
    SignatureDelta {
        /// The piece.
        signature: String,
    },
    /// A kind that is not known here.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// Why an answer stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDelta {
    /// `end_turn`, `tool_use`, `max_tokens`, `stop_sequence`, `refusal` …
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// The sequence that stopped it.
    #[serde(default)]
    pub stop_sequence: Option<String>,
}

/// A failure that arrived inside a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFault {
    /// The provider's word for it.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// What it says.
    #[serde(default)]
    pub message: String,
}

/// A block that is whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// The block.
    pub block: Block,
    /// The arguments as they came, when they are not a JSON object.
    pub bad_input: Option<String>,
}

/// Adds events up to a message.
#[derive(Debug, Default)]
pub struct Assembler {
    /// The head, once it came.
    pub head: MessageHead,
    /// The counts so far; final after the last event.
    pub usage: Usage,
    /// Why it stopped.
    pub stop_reason: Option<String>,
    /// The blocks that are whole, in order.
    pub done: Vec<Completed>,
    /// Whether the answer is whole.
    pub finished: bool,
    open: Vec<(u32, Block, String)>,
}

impl Assembler {
    /// Takes one event; returns the block that it completed.
    pub fn push(&mut self, event: &StreamEvent) -> Option<&Completed> {
        match event {
            StreamEvent::MessageStart { message } => {
                self.head = message.clone();
                self.usage = message.usage.clone();
            }
            StreamEvent::ContentBlockStart {
                index,
                content_block,
            } => self
                .open
                .push((*index, content_block.clone(), String::new())),
            StreamEvent::ContentBlockDelta { index, delta } => self.grow(*index, delta),
            StreamEvent::ContentBlockStop { index } => return self.close(*index),
            StreamEvent::MessageDelta { delta, usage } => {
                if delta.stop_reason.is_some() {
                    self.stop_reason.clone_from(&delta.stop_reason);
                }
                self.usage.update(usage);
            }
            StreamEvent::MessageStop => self.finished = true,
            StreamEvent::Ping | StreamEvent::Error { .. } => {}
        }
        None
    }

    fn grow(&mut self, index: u32, delta: &BlockDelta) {
        let Some((_, block, json)) = self.open.iter_mut().find(|(open, ..)| *open == index) else {
            return;
        };
        match (block, delta) {
            (Block::Text { text, .. }, BlockDelta::TextDelta { text: more }) => text.push_str(more),
            (Block::Thinking { thinking, .. }, BlockDelta::ThinkingDelta { thinking: more }) => {
                thinking.push_str(more);
            }
            (Block::Thinking { signature, .. }, BlockDelta::SignatureDelta { signature: more }) => {
                signature.push_str(more);
            }
            (_, BlockDelta::InputJsonDelta { partial_json }) => json.push_str(partial_json),
            // A delta that does not fit its block adds nothing.
            _ => {}
        }
    }

    fn close(&mut self, index: u32) -> Option<&Completed> {
        let at = self.open.iter().position(|(open, ..)| *open == index)?;
        let (_, mut block, json) = self.open.remove(at);
        let mut bad_input = None;
        let json_given = !json.trim().is_empty();
        match &mut block {
            Block::ToolUse { input, .. } => {
                if json_given {
                    match serde_json::from_str::<Map<String, Value>>(&json) {
                        Ok(object) => *input = Value::Object(object),
                        Err(_) => bad_input = Some(json),
                    }
                }
                if !input.is_object() {
                    *input = Value::Object(Map::new());
                }
            }
            Block::Other(fields) if json_given => {
                if let Ok(object) = serde_json::from_str(&json) {
                    fields.insert("input".into(), Value::Object(object));
                }
            }
            _ => {}
        }
        self.done.push(Completed { block, bad_input });
        self.done.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn feed(events: &[Value]) -> Assembler {
        let mut assembler = Assembler::default();
        for event in events {
            let event: StreamEvent = serde_json::from_value(event.clone()).unwrap();
            assembler.push(&event);
        }
        assembler
    }

    #[test]
    fn a_call_is_put_together_from_pieces() {
        let assembler = feed(&[
            json!({"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":9,"output_tokens":1}}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Read","input":{}}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1}"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}),
            json!({"type":"message_stop"}),
        ]);
        assert!(assembler.finished);
        assert_eq!(assembler.usage.input_tokens, 9);
        assert_eq!(assembler.usage.output_tokens, 7);
        assert_eq!(assembler.stop_reason.as_deref(), Some("tool_use"));
        assert_eq!(
            assembler.done[0].block,
            Block::tool_use("t", "Read", json!({"a":1}))
        );
    }

    #[test]
    fn broken_arguments_are_kept_for_the_complaint() {
        let assembler = feed(&[
            json!({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Read","input":{}}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"[1"}}),
            json!({"type":"content_block_stop","index":0}),
        ]);
        assert_eq!(assembler.done[0].bad_input.as_deref(), Some("[1"));
        assert_eq!(
            assembler.done[0].block,
            Block::tool_use("t", "Read", json!({}))
        );
    }

    #[test]
    fn deltas_without_a_block_are_harmless() {
        let assembler = feed(&[
            json!({"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"x"}}),
            json!({"type":"content_block_delta","index":4,"delta":{"type":"citations_delta","x":1}}),
            json!({"type":"content_block_stop","index":4}),
        ]);
        assert!(assembler.done.is_empty());
    }
}
