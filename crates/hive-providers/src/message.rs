//! A conversation in the provider-neutral form that sessions keep and dialects translate.
//!
//! The shape is that of the Anthropic Messages API, because it is the richer one; a block of a kind
//! that is not known here is kept as it came and sent back as it was.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, or the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One turn of one speaker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; never empty in a request.
    #[serde(deserialize_with = "content")]
    pub content: Vec<Block>,
}

impl Message {
    /// What a person says.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            content: vec![Block::text(text)],
        }
    }

    /// What the model says.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: vec![Block::text(text)],
        }
    }

    /// All text in it.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }
}

/// Content may be a plain string on the wire.
fn content<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Blocks(Vec<Block>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Text(text) => vec![Block::text(text)],
        Either::Blocks(blocks) => blocks,
    })
}

/// Marks the end of a prefix that the provider may cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CacheControl {
    /// For five minutes after its last use.
    Ephemeral,
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
        /// A cache breakpoint after this block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// What the model thought; goes back unchanged.
    Thinking {
        /// The thought.
        thinking: String,
        /// Proof for the provider that it is unchanged.
        #[serde(default)]
        signature: String,
    },
    /// A thought that only the provider can read.
    RedactedThinking {
        /// Opaque.
        data: String,
    },
    /// A call of a tool.
    ToolUse {
        /// What the result refers to.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments: an object.
        input: Value,
        /// A cache breakpoint after this block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// What a tool answered.
    ToolResult {
        /// The call.
        tool_use_id: String,
        /// The answer.
        #[serde(default)]
        content: ResultContent,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        /// A cache breakpoint after this block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// A picture.
    Image {
        /// Where its bytes are.
        source: Source,
    },
    /// A PDF.
    Document {
        /// Where its bytes are.
        source: Source,
    },
    /// A kind that is not known here.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl Block {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }

    /// A call of a tool.
    pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self::ToolUse {
            id: id.into(),
            name: name.into(),
            input,
            cache_control: None,
        }
    }

    /// The answer of a tool.
    pub fn tool_result(id: impl Into<String>, content: ResultContent, is_error: bool) -> Self {
        Self::ToolResult {
            tool_use_id: id.into(),
            content,
            is_error,
            cache_control: None,
        }
    }

    /// The text, if it is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Puts a cache breakpoint after this block, where its kind can carry one.
    pub fn mark_cached(&mut self) -> bool {
        match self {
            Self::Text {
                text,
                cache_control,
            } if !text.is_empty() => *cache_control = Some(CacheControl::Ephemeral),
            Self::ToolUse { cache_control, .. } | Self::ToolResult { cache_control, .. } => {
                *cache_control = Some(CacheControl::Ephemeral);
            }
            _ => return false,
        }
        true
    }
}

/// The answer of a tool: a string or blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResultContent {
    /// Plain text.
    Text(String),
    /// Text and pictures.
    Blocks(Vec<Block>),
}

impl Default for ResultContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl ResultContent {
    /// All text in it.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks
                .iter()
                .filter_map(Block::as_text)
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }
}

/// Where the bytes of a picture or document are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// Inline.
    Base64 {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes, encoded.
        data: String,
    },
    /// Some other place the provider knows.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// What the model calls it.
    pub name: String,
    /// When and how to use it.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Value,
}

/// How much the model may think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Off,
    /// At most this many tokens.
    Budget(u32),
}

/// What to ask a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The provider's name of the model.
    pub model: String,
    /// The instructions; empty for none.
    pub system: String,
    /// The conversation; begins with the user and alternates.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// The longest answer.
    pub max_tokens: u32,
    /// Whether to think first.
    pub thinking: Thinking,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_blocks_survive_a_round_trip() {
        let wire = json!({"role":"assistant","content":[
            {"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}},
            {"type":"text","text":"hi"},
        ]});
        let message: Message = serde_json::from_value(wire.clone()).unwrap();
        assert!(matches!(message.content[0], Block::Other(_)));
        assert_eq!(serde_json::to_value(&message).unwrap(), wire);
    }

    #[test]
    fn plain_string_content_is_one_text_block() {
        let message: Message =
            serde_json::from_value(json!({"role":"user","content":"x"})).unwrap();
        assert_eq!(message, Message::user("x"));
    }

    #[test]
    fn an_empty_text_carries_no_breakpoint() {
        assert!(!Block::text("").mark_cached());
        assert!(Block::text("a").mark_cached());
    }
}
