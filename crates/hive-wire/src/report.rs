//! What a harness reports to the host: its status line, its turns, its state and its events.
//!
//! The host believes none of it further than it must: every text is cut and every number capped
//! before it is kept or shown, and which credential an agent uses is the host's own knowledge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{AgentName, HarnessEpoch, MessageId, SendKey, Timestamp, TurnId};

/// The longest status line, in characters.
pub const MAX_STATUS: usize = 200;
/// The most messages that one turn may name.
pub const MAX_TURN_MESSAGES: usize = 256;
/// The most tools that one turn may name.
pub const MAX_TURN_TOOLS: usize = 64;
/// The most events in one `post_events`.
pub const MAX_POSTED_EVENTS: usize = 1_000;
/// The largest `data` of one event as JSON; the harness cuts what is larger.
pub const MAX_EVENT_DATA: usize = 256 * 1024;

/// Sets the line that says what the caller is about; `""` clears it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SetStatus {
    /// One line of at most [`MAX_STATUS`] characters.
    pub text: String,
    /// The same key from the same agent within a day is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// The status is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusSet {}

/// Asks who an agent is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GetAgentMeta {
    /// Which one; the caller unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMeta {
    /// Its name.
    pub name: AgentName,
    /// The version of the host.
    pub hyperhive_rev: String,
    /// Whether a harness of it is connected.
    pub running: bool,
    /// What it says of itself; empty when it says nothing.
    pub status_text: String,
    /// When it said so.
    pub status_set_at: Option<Timestamp>,
    /// The hive's name, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hive_name: Option<String>,
    /// The name of the swarm it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarm_name: Option<String>,
}

/// Lists everybody else in the hive.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListPeers {}

/// Everybody else in the hive, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    /// One row each.
    pub peers: Vec<Peer>,
}

/// Another agent, as agents see each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: AgentName,
    /// Its parent in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentName>,
    /// Whether a harness of it is connected.
    pub running: bool,
    /// What it says of itself.
    pub status_text: String,
}

/// What a turn was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// Mail.
    Mail,
    /// The agent asked for another turn.
    Continue,
    /// Notes before a compaction or a reset.
    Checkpoint,
    /// A compaction.
    Compact,
}

impl TurnKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Mail, Self::Continue, Self::Checkpoint, Self::Compact];

    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Continue => "continue",
            Self::Checkpoint => "checkpoint",
            Self::Compact => "compact",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Outcomes of a turn that went well.
pub const GOOD_OUTCOMES: &[&str] = &["ok", "compacted"];
/// Outcomes that say nothing against the turn: it was put off, not failed.
pub const DEFERRED_OUTCOMES: &[&str] = &[
    "rate_limited",
    "auth_failed",
    "unavailable",
    "interrupted",
    "shutdown",
];

/// The counts of one engine run (T12). The same (turn, kind, `started_at`) is one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostTurnCounts {
    /// The turn.
    pub turn: TurnId,
    /// What it was for.
    pub kind: TurnKind,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, from its begin to its end.
    pub duration_ms: u64,
    /// How long the engine ran.
    #[serde(default)]
    pub engine_ms: u64,
    /// Which model.
    #[serde(default)]
    pub model: String,
    /// Tokens read that were in no cache.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: u64,
    /// Tokens read from the cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    #[serde(default)]
    pub cache_creation_tokens: u64,
    /// What it cost, in millionths of a US dollar.
    #[serde(default)]
    pub cost_micro_usd: u64,
    /// How full the context was after the last inference.
    #[serde(default)]
    pub context_tokens: u64,
    /// How large the context is.
    #[serde(default)]
    pub window: u64,
    /// How it ended: one of [`GOOD_OUTCOMES`], of [`DEFERRED_OUTCOMES`], or a word for a failure.
    pub outcome: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The engine's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The messages it dealt with.
    #[serde(default)]
    pub messages: Vec<MessageId>,
    /// The tools it used.
    #[serde(default)]
    pub tools: Vec<ToolCount>,
}

/// How often a turn used a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCount {
    /// The tool.
    pub name: String,
    /// How often.
    pub count: u32,
}

/// The counts are on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCountsPosted {}

/// What a harness does right now (T28).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// It waits for mail.
    #[default]
    Idle,
    /// A turn runs.
    Thinking,
    /// The session is being compacted.
    Compacting,
}

/// How a harness is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HarnessStatus {
    /// Well.
    #[default]
    Online,
    /// The model's service refuses for now; it waits.
    RateLimited,
    /// It waits for somebody to log in.
    NeedsLoginIdle,
    /// The model's service is not to be had; it tries again by itself.
    Unavailable,
    /// It is about to end.
    Stopping,
}

/// Says how a harness stands. The last one counts; a harness says it again after each connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostState {
    /// What it does.
    pub turn_state: TurnState,
    /// Since when.
    pub since: Timestamp,
    /// How it is doing.
    #[serde(default)]
    pub status: HarnessStatus,
    /// The model of the next turn.
    #[serde(default)]
    pub model: String,
    /// How full the context is.
    #[serde(default)]
    pub context_tokens: u64,
    /// How large the context is.
    #[serde(default)]
    pub window: u64,
    /// The tool that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_tool: Option<String>,
    /// Which engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// The credential, as the harness sees it; the host decides by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// When a rate limit ends, as the service said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// Whether the model behind the engine is the rehearsal one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rehearsed: bool,
}

/// The state is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatePosted {}

/// Posts events in order. What the host has of this epoch already is dropped, a hole is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PostEvents {
    /// Which life of the harness numbered them.
    pub epoch: HarnessEpoch,
    /// The events, by rising number; at most [`MAX_POSTED_EVENTS`].
    pub events: Vec<PostedEvent>,
}

/// One event of a harness.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PostedEvent {
    /// Its number in the epoch, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub kind: PostedKind,
    /// The particulars: a JSON object of at most [`MAX_EVENT_DATA`] bytes.
    pub data: Box<RawValue>,
}

/// What happened in a harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostedKind {
    /// A turn began: `{turn, from, body, unread, message_ids, delivery}`.
    TurnStart,
    /// The engine said something: `{value}`.
    Stream,
    /// A remark, or a line of the engine's stderr: `{text}`.
    Note,
    /// A turn ended: `{turn, ok, outcome, note}`.
    TurnEnd,
    /// The state changed: `{turn_state, status, …}`.
    State,
    /// Events were lost: `{dropped}`.
    Gap,
    /// A line of a login dialogue: `{text}`.
    Login,
    /// Something that this build does not know; it came from a newer harness.
    #[serde(other)]
    Unknown,
}

impl PostedKind {
    /// Every kind that this build knows.
    pub const ALL: [Self; 7] = [
        Self::TurnStart,
        Self::Stream,
        Self::Note,
        Self::TurnEnd,
        Self::State,
        Self::Gap,
        Self::Login,
    ];

    /// Its name, as on the wire and in the event log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TurnStart => "turn_start",
            Self::Stream => "stream",
            Self::Note => "note",
            Self::TurnEnd => "turn_end",
            Self::State => "state",
            Self::Gap => "gap",
            Self::Login => "login",
            Self::Unknown => "unknown",
        }
    }
}

/// The events are in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsPosted {
    /// The number that the host expects next in this epoch.
    pub next_seq: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_the_wire_are_those_of_the_code() {
        for kind in PostedKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.as_str()));
        }
        for kind in TurnKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.as_str()));
            assert_eq!(TurnKind::from_name(kind.as_str()), Some(kind));
        }
        let newer: PostedKind = serde_json::from_str("\"sunrise\"").unwrap();
        assert_eq!(newer, PostedKind::Unknown);
    }
}
