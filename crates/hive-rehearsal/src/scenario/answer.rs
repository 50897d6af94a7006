//! What a rule answers when all goes well.

use std::collections::BTreeMap;

use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer, de};

use super::{
    json_template::JsonTemplate,
    limits::Limits,
    number::Millis,
    template::{GroupName, HasGroups, Template},
};

/// An answer: what the model thinks, says and calls, in this order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// A block of thinking.
    pub thinking: Option<Template>,
    /// A block of text.
    pub text: Option<Template>,
    /// The tools that are called, all at once.
    pub tools: Vec<ToolCall>,
    /// Why it ends; without it, `tool_use` when tools are called and else `end_turn`.
    pub stop_reason: Option<StopReason>,
    /// The numbers of tokens; what is not given is estimated.
    pub usage: UsageGiven,
    /// Time before the first byte.
    #[serde(rename = "delay_ms")]
    pub delay: Option<Millis>,
    /// Time before each piece of a streamed answer.
    #[serde(rename = "chunk_delay_ms")]
    pub chunk_delay: Option<Millis>,
    /// The size of a piece, in characters.
    pub chunk_chars: Option<ChunkChars>,
    /// What the headers say about the limits of the credential.
    pub limits: Option<Limits>,
    /// Further headers.
    pub headers: Headers,
}

/// One call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its input.
    #[serde(default)]
    pub input: JsonTemplate,
    /// Whether the call is left out when the tool is not offered.
    #[serde(default)]
    pub optional: bool,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// All is said.
    EndTurn,
    /// Tools are to be run.
    ToolUse,
    /// The answer was cut at the number of tokens that the client allows.
    MaxTokens,
    /// A text that the client named was written.
    StopSequence,
    /// The model will not say it.
    Refusal,
    /// The client is to continue as is.
    PauseTurn,
    /// The context is full.
    ModelContextWindowExceeded,
}

/// Numbers of tokens that a rule gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageGiven {
    /// Tokens of the request that no cache held.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Tokens that were read from the cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens that were written to the cache.
    pub cache_creation_tokens: Option<u64>,
}

/// How fast an answer comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// Time before the first byte.
    #[serde(rename = "delay_ms")]
    pub delay: Millis,
    /// Time before each piece of a streamed answer.
    #[serde(rename = "chunk_delay_ms")]
    pub chunk_delay: Millis,
    /// The size of a piece.
    pub chunk_chars: ChunkChars,
}

/// The size of a piece, in characters: at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "usize")]
pub struct ChunkChars(pub usize);

impl Default for ChunkChars {
    fn default() -> Self {
        Self(24)
    }
}

impl TryFrom<usize> for ChunkChars {
    type Error = &'static str;

    fn try_from(chars: usize) -> Result<Self, Self::Error> {
        match chars {
            0 => Err("a piece has at least 1 character"),
            chars => Ok(Self(chars)),
        }
    }
}

/// Headers that a rule adds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(HeaderName, HeaderValue)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, String>::deserialize(deserializer)?;
        let header = |(name, value): (String, String)| {
            let name = HeaderName::try_from(&name)
                .map_err(|_| de::Error::custom(format!("`{name}` is no name of a header")))?;
            let value = HeaderValue::try_from(&value)
                .map_err(|_| de::Error::custom(format!("`{name}` cannot have this value")))?;
            if matches!(
                name.as_str(),
                "content-length" | "transfer-encoding" | "connection"
            ) {
                return Err(de::Error::custom(format!("`{name}` is the server's own")));
            }
            Ok((name, value))
        };
        map.into_iter()
            .map(header)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Answer {
    /// An answer of text alone.
    pub fn of_text(text: &str) -> Self {
        Self {
            text: Template::parse(&Template::escape(text)).ok(),
            ..Self::default()
        }
    }

    /// Its own pace, over that of the scenario.
    pub fn pace(&self, scenario: Pace) -> Pace {
        Pace {
            delay: self.delay.unwrap_or(scenario.delay),
            chunk_delay: self.chunk_delay.unwrap_or(scenario.chunk_delay),
            chunk_chars: self.chunk_chars.unwrap_or(scenario.chunk_chars),
        }
    }
}

impl HasGroups for Answer {
    fn missing_group(&self, has_group: &dyn Fn(&GroupName<'_>) -> bool) -> Option<String> {
        self.thinking
            .missing_group(has_group)
            .or_else(|| self.text.missing_group(has_group))
            .or_else(|| {
                self.tools
                    .iter()
                    .find_map(|call| call.input.missing_group(has_group))
            })
    }
}
