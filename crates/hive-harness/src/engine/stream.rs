//! A typed, tolerant view of the engine's events.
//!
//! Only what the harness decides by is read. Every field may be missing or of another type, numbers
//! may be fractions, and unknown types of events are ignored: versions of the engine differ in all
//! three. Text that a model, a tool or a user wrote is never read as anything but text.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// The model name of messages that the engine wrote itself.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// One event of the stream.
#[derive(Debug)]
pub(super) enum StreamEvent {
    Init(Init),
    Assistant(Box<Assistant>),
    User(User),
    Result(Box<ResultEvent>),
    ApiRetry(ApiRetry),
    RateLimit(RateLimit),
    CompactBoundary(CompactBoundary),
    Status(Status),
    PermissionDenied,
    Error(ErrorEvent),
    /// Anything else.
    Other,
}

impl StreamEvent {
    /// Reads one line; none when it is no JSON object.
    pub(super) fn parse(line: &str) -> Option<Self> {
        // An array would be taken for an object with its fields in order.
        if !line.trim_ascii_start().starts_with('{') {
            return None;
        }
        let head: Head = serde_json::from_str(line).ok()?;
        let subtype = head.subtype.as_deref().unwrap_or_default();
        let event = match (head.kind.as_deref().unwrap_or_default(), subtype) {
            ("system", "init") => read(line).map(Self::Init),
            ("system", "api_retry") => read(line).map(Self::ApiRetry),
            ("system", "compact_boundary") => read(line).map(Self::CompactBoundary),
            ("system", "status") => read(line).map(Self::Status),
            ("system", "permission_denied") => Some(Self::PermissionDenied),
            ("assistant", _) => read(line).map(|message| Self::Assistant(Box::new(message))),
            ("user", _) => read(line).map(Self::User),
            ("result", _) => read(line).map(|result| Self::Result(Box::new(result))),
            ("rate_limit_event", _) => read(line).map(Self::RateLimit),
            ("error", _) => read(line).map(Self::Error),
            _ => None,
        };
        Some(event.unwrap_or(Self::Other))
    }
}

/// What tells events apart.
#[derive(Debug, Deserialize)]
struct Head {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    subtype: Option<String>,
}

/// The state of the engine at the start of a turn; comes again with each turn of a process.
#[derive(Debug, Deserialize)]
pub(super) struct Init {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) claude_code_version: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) mcp_servers: Option<Vec<McpServer>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tools: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpServer {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<String>,
}

/// A block of the model's answer, or a message that the engine made itself.
#[derive(Debug, Deserialize)]
pub(super) struct Assistant {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<Message>,
    /// Set inside a sub-agent: its context is not the conversation's.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error_status: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) local_command_outcome: Option<LocalCommandOutcome>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content: Option<Vec<Block>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    /// A tool's name.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    /// The id of a tool's call.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    /// In a result: the call that it belongs to.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) input_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cache_read_input_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cache_creation_input_tokens: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LocalCommandOutcome {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
}

/// Results of tools on their way to the model.
#[derive(Debug, Deserialize)]
pub(super) struct User {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<Message>,
}

/// The end of a turn.
#[derive(Debug, Deserialize)]
pub(super) struct ResultEvent {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) subtype: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_error: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) result: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) errors: Option<Vec<String>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) terminal_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error_status: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) api_error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) total_cost_usd: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Usage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model_usage_since_last_result:
        Option<std::collections::BTreeMap<String, ModelUsage>>,
    #[serde(default, rename = "modelUsage", deserialize_with = "lenient")]
    pub(super) model_usage: Option<std::collections::BTreeMap<String, ModelUsage>>,
    /// The prompts that this result answers, by the ids that their sender gave them.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user_message_uuids: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsage {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) input_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cache_read_input_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cache_creation_input_tokens: Option<f64>,
    #[serde(default, rename = "costUSD", deserialize_with = "lenient")]
    pub(super) cost_usd: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) context_window: Option<f64>,
}

/// The engine asks the API again.
#[derive(Debug, Deserialize)]
pub(super) struct ApiRetry {
    /// None when there was no answer at all.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error_status: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RateLimit {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) rate_limit_info: Option<RateLimitInfo>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RateLimitInfo {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    /// In seconds since 1970.
    #[serde(default, rename = "resetsAt", deserialize_with = "lenient")]
    pub(super) resets_at: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CompactBoundary {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) compact_metadata: Option<CompactMetadata>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CompactMetadata {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) post_tokens: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) compact_result: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) compact_error: Option<String>,
}

/// An error outside any message, as the API itself words it.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorEvent {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<ErrorBody>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<String>,
}

/// The event as `T`; none when a key comes twice, which no engine does.
fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

/// The field, or none when it is of another type. It is read as raw text first, so that a field of
/// another type, or a text that is no Unicode, costs that field and not the event.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_fields_cost_themselves_and_not_the_event() {
        let line = r#"{"is_error":"perhaps","usage":{"input_tokens":1.5e3,"output_tokens":[]},
            "result":"\ud83d cut","errors":{"a":1},"total_cost_usd":null,"type":"result","new":{"x":[1]}}"#;
        let Some(StreamEvent::Result(result)) = StreamEvent::parse(line) else {
            panic!("a result");
        };
        assert_eq!(result.is_error, None);
        assert_eq!(result.result, None, "half a pair is no text");
        let usage = result.usage.expect("an object");
        assert_eq!(usage.input_tokens, Some(1500.0));
        assert_eq!(usage.output_tokens, None);
    }

    #[test]
    fn what_is_no_event_is_told_from_what_is_unknown() {
        for line in [
            "",
            "42",
            "[1]",
            "\"result\"",
            "null",
            "{",
            "{\"type\":\"result\"",
        ] {
            assert!(StreamEvent::parse(line).is_none(), "{line}");
        }
        for line in [
            "{}",
            r#"{"type":"news"}"#,
            r#"{"type":7}"#,
            r#"{"type":"system"}"#,
        ] {
            assert!(
                matches!(StreamEvent::parse(line), Some(StreamEvent::Other)),
                "{line}"
            );
        }
    }

    #[test]
    fn the_content_of_a_message_may_be_a_text() {
        let line = r#"{"type":"user","message":{"content":"hello","model":"m"}}"#;
        let Some(StreamEvent::User(user)) = StreamEvent::parse(line) else {
            panic!("a user event");
        };
        let message = user.message.expect("an object");
        assert!(message.content.is_none());
        assert_eq!(message.model.as_deref(), Some("m"));
    }
}
