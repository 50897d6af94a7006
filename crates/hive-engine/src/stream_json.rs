//! The JSON lines of headless `claude`: what is printed on stdout and read from stdin.
//!
//! The same types read the recorded transcripts of the real program and print ours. Every field
//! that a newer version may add lands in `extra`, and an event of an unknown kind is kept whole.

use hive_providers::{Message, StreamEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type Extra = Map<String, Value>;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// News of the engine itself.
    System(System),
    /// A block that the model produced.
    Assistant(Assistant),
    /// What goes to the model: results of tools, nudges, echoes.
    User(User),
    /// A piece of an answer, with `--include-partial-messages`.
    StreamEvent(Partial),
    /// How a turn ended.
    Result(Box<TurnResult>),
    /// What the provider says about usage limits.
    RateLimitEvent(RateLimitLine),
    /// The answer to a control request.
    ControlResponse(ControlResponse),
    /// A control request, in either direction.
    ControlRequest(ControlRequest),
    /// A kind that is not known here.
    #[serde(untagged)]
    Other(Extra),
}

/// News of the engine itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum System {
    /// What this turn runs with.
    Init(Box<Init>),
    /// `compacting`, `requesting` or nothing.
    Status(Status),
    /// A request failed and is tried again.
    ApiRetry(ApiRetry),
    /// A tool may not run.
    PermissionDenied(PermissionDenied),
    /// The history before this was replaced by a summary.
    CompactBoundary(CompactBoundary),
    /// Something the user may want to know.
    Informational(Informational),
    /// A kind that is not known here.
    #[serde(untagged)]
    Other(Extra),
}

/// What a turn runs with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct Init {
    pub cwd: String,
    pub session_id: String,
    pub tools: Vec<String>,
    pub mcp_servers: Vec<McpServer>,
    pub model: String,
    #[serde(rename = "permissionMode")]
    pub permission_mode: String,
    pub slash_commands: Vec<String>,
    #[serde(rename = "apiKeySource")]
    pub api_key_source: String,
    pub claude_code_version: String,
    pub output_style: String,
    #[serde(default)]
    pub agents: Vec<String>,
    #[serde(default)]
    pub skills: Vec<String>,
    #[serde(default)]
    pub plugins: Vec<Value>,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// An MCP server and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name in the configuration.
    pub name: String,
    /// `connected`, `failed`, `pending`, `disabled` or `needs-auth`.
    pub status: String,
    /// Where it was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What the engine is busy with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct Status {
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_error: Option<String>,
    #[serde(
        default,
        rename = "permissionMode",
        skip_serializing_if = "Option::is_none"
    )]
    pub permission_mode: Option<String>,
    pub session_id: String,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A request that is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct ApiRetry {
    pub attempt: u32,
    pub max_retries: u32,
    /// Whole milliseconds here; older versions of `claude` print fractions.
    pub retry_delay_ms: f64,
    pub error_status: Option<u16>,
    pub error: String,
    pub session_id: String,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool that may not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct PermissionDenied {
    pub tool_name: String,
    pub tool_use_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<String>,
    pub message: String,
    pub session_id: String,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Where a compaction cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactBoundary {
    /// What was cut.
    pub compact_metadata: CompactMetadata,
    /// The conversation.
    pub session_id: String,
    /// Of this line.
    pub uuid: String,
    /// Whatever else there is.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a compaction cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct CompactMetadata {
    pub trigger: String,
    pub pre_tokens: u64,
    #[serde(default)]
    pub post_tokens: u64,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Something the user may want to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct Informational {
    pub content: String,
    pub level: String,
    pub session_id: String,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A block that the model produced, or a failure in the model's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct Assistant {
    pub message: Value,
    pub parent_tool_use_id: Option<String>,
    pub session_id: String,
    pub uuid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_api_error_message: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// What goes to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct User {
    pub message: Message,
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Value>,
    #[serde(
        default,
        rename = "isSynthetic",
        skip_serializing_if = "Option::is_none"
    )]
    pub is_synthetic: Option<bool>,
    #[serde(default, rename = "isReplay", skip_serializing_if = "Option::is_none")]
    pub is_replay: Option<bool>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct Partial {
    pub event: StreamEvent,
    pub session_id: String,
    pub parent_tool_use_id: Option<String>,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct TurnResult {
    pub subtype: String,
    pub is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error: Option<String>,
    pub duration_ms: u64,
    pub duration_api_ms: u64,
    pub num_turns: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
    pub stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_reason: Option<String>,
    pub session_id: String,
    pub total_cost_usd: f64,
    pub usage: Value,
    #[serde(rename = "modelUsage")]
    pub model_usage: Map<String, Value>,
    #[serde(default)]
    pub model_usage_since_last_result: Map<String, Value>,
    pub permission_denials: Vec<Denial>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_message_uuids: Vec<String>,
    #[serde(default)]
    pub result_index: u32,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call that was not allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// Its arguments.
    pub tool_input: Value,
}

/// What the provider says about usage limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the contract's own")]
pub struct RateLimitLine {
    pub rate_limit_info: Value,
    pub session_id: String,
    pub uuid: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A control request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Echoed in the response.
    pub request_id: String,
    /// `subtype` and its fields.
    pub request: Map<String, Value>,
}

/// The answer to a control request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlResponse {
    /// `subtype`, `request_id`, and `response` or `error`.
    pub response: Map<String, Value>,
}
