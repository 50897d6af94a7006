//! What the operator asks about and of the harnesses: state, control, statistics, holds, links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::{
    AgentName, ControlId, Timestamp, TurnRowId,
    control::ControlAction,
    report::{HarnessStatus, PostTurnCounts, TurnState},
};

/// Asks a harness to do something.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ControlAgent {
    /// Whose harness.
    pub name: AgentName,
    /// What to do. `hold`, `release` and `stop` are the host's own.
    pub action: ControlAction,
    /// How long to wait for what comes of it; not at all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}

/// How far a request to a harness got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlOutcome {
    /// The number of the request.
    pub request_id: ControlId,
    /// Whether the harness has answered.
    pub state: ControlState,
    /// Whether it carried the request out, once it has answered. (`ok` is the reply's own word.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_out: Option<bool>,
    /// What it says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whether a harness has answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlState {
    /// It has.
    Done,
    /// It will; the request waits for it or is under way.
    Queued,
}

/// Asks how an agent stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetAgentState {
    /// Which one.
    pub name: AgentName,
}

/// How an agent stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSnapshot {
    /// Its name.
    pub name: AgentName,
    /// Where it stands, in one word.
    pub state: AgentState,
    /// Whether a harness of it is connected.
    pub connected: bool,
    /// What its harness said last that it does.
    pub turn_state: TurnState,
    /// Since when; none when no harness said anything yet.
    pub turn_state_since: Option<Timestamp>,
    /// How its harness said last that it is doing; none when it said nothing yet.
    pub status: Option<HarnessStatus>,
    /// The model of its next turn.
    pub model: String,
    /// Its engine.
    pub engine: String,
    /// The engine's version.
    pub engine_version: String,
    /// How full its context is.
    pub context_tokens: u64,
    /// How large its context is.
    pub context_window_tokens: u64,
    /// The tool that runs.
    pub current_tool: Option<String>,
    /// Messages that wait in its inbox.
    pub unread: u32,
    /// Messages that its open turn holds.
    pub inflight: u32,
    /// What it says of itself.
    pub status_text: String,
    /// When it said so.
    pub status_set_at: Option<Timestamp>,
    /// The credential it is on.
    pub credential: String,
    /// Until when it must not begin a turn.
    pub held_until: Option<Timestamp>,
    /// When the rate limit of its credential ends, as far as is known.
    pub resets_at: Option<Timestamp>,
    /// Requests that its harness has not answered.
    pub pending_controls: u32,
    /// Whether its model is the rehearsal one.
    pub rehearsed: bool,
}

/// Reads the statistics of an agent's turns, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turns {
    /// Whose.
    pub name: AgentName,
    /// Only those before this one: the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TurnRowId>,
    /// At most so many; 50 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPage {
    /// The turns, newest first.
    pub turns: Vec<TurnRow>,
    /// Where the next page begins, when there is one.
    pub next: Option<TurnRowId>,
}

/// One engine run with its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRow {
    /// Its number.
    pub turn_row_id: TurnRowId,
    /// Whose.
    pub agent: AgentName,
    /// What its harness counted.
    #[serde(flatten)]
    pub counts: PostTurnCounts,
}

/// Sums the turns up, by agent and day.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TurnTotals {
    /// Only those of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
    /// The last so many days, today included; 7 unless given.
    #[serde(default = "week")]
    pub days: u32,
}

fn week() -> u32 {
    7
}

/// The sums, newest day first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalsPage {
    /// One row for each agent and day with turns.
    pub totals: Vec<DayTotal>,
    /// True when the list was cut to fit into a line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What one agent did on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayTotal {
    /// Who.
    pub agent: AgentName,
    /// The day, in UTC, such as `2026-01-02`.
    pub day: String,
    /// Engine runs.
    pub turns: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were put off: limits, outages, logins, interrupts.
    pub deferred: u64,
    /// Tokens read that were in no cache.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub cache_creation_tokens: u64,
    /// What they cost, in millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// How long they took.
    pub duration_ms: u64,
    /// How long the engine ran.
    pub engine_ms: u64,
    /// How full the context was at most.
    #[serde(default)]
    pub context_tokens: u64,
}

/// Lifts the wait of the credential that an agent is on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lift {
    /// The agent.
    pub name: AgentName,
}

/// The wait is lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// The credential.
    pub credential: String,
    /// Whether there was a wait.
    pub was_held: bool,
    /// How many harnesses were told.
    pub released: u32,
}

/// Makes a one-time link to a page.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Link {
    /// The page of this agent; the dashboard unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
    /// Also ends every session that was begun with an earlier link to this page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotate: bool,
}

/// A link that works once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneTimeLink {
    /// The address, with the code behind `#`.
    pub url: String,
    /// Until when it works.
    pub expires_at: Timestamp,
}
