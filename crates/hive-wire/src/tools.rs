//! The commands of an agent's socket that not every agent has: they belong to a tool group or need
//! a capability. Here are their shapes; who may use them is decided by the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, Recipient, ScheduleId, SendKey, Timestamp,
    grants::{Capability, Group},
    host::AgentState,
};

/// The longest prompt of a schedule, as JSON-encoded bytes.
pub const MAX_PROMPT: usize = 16 * 1024;
/// The shortest time between two firings of a schedule, in seconds.
pub const MIN_INTERVAL_SECONDS: u32 = 60;
/// The most that `get_logs` and `get_host_journal` return, in bytes.
pub const MAX_LOG: u32 = 128 * 1024;

/// Stops a child of the caller's and leaves it stopped. Idempotent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kill {
    /// Which child.
    pub name: AgentName,
    /// The same key from the same agent within a day is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Starts a child of the caller's that is stopped or failed. Idempotent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// Which child.
    pub name: AgentName,
    /// The same key from the same agent within a day is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Stops a child of the caller's and starts it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Restart {
    /// Which child.
    pub name: AgentName,
    /// The same key from the same agent within a day is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// How a child stands after a command about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildState {
    /// Which child.
    pub name: AgentName,
    /// Where it stands.
    pub state: AgentState,
    /// What there is to know: why it failed, or why it is where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Lists the caller's children; everybody with the capability `query_agent_state`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListAgents {}

/// Agents with how they stand, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentList {
    /// One row each.
    pub agents: Vec<ListedAgent>,
}

/// An agent as one that may start and stop it sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedAgent {
    /// Its name.
    pub name: AgentName,
    /// Its parent in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentName>,
    /// Where it stands.
    pub state: AgentState,
    /// What it says of itself.
    pub status_text: String,
    /// Which model it uses; empty for one that runs elsewhere.
    pub model: String,
    /// Messages that wait in its inbox.
    pub unread: u32,
    /// Messages that its open turn holds.
    pub inflight: u32,
    /// What there is to know: why it failed, or why it is where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Schedules a prompt that arrives in the caller's own inbox: once, or again and again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// What it says.
    pub prompt: String,
    /// Once, in so many seconds; one of the three times is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u64>,
    /// Once, at this time in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_unix_timestamp: Option<i64>,
    /// Again and again: a cron expression of five fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of `cron`, such as `Europe/Vienna`; UTC unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The same key from the same agent within a day is one schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// The prompt is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// Its id.
    pub schedule_id: ScheduleId,
    /// When it fires next.
    pub next_at: Timestamp,
}

/// Lists the caller's schedules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListSchedules {}

/// Schedules, the next one first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedules {
    /// One row each.
    pub schedules: Vec<ScheduleRow>,
}

/// A scheduled prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleRow {
    /// Its id.
    pub schedule_id: ScheduleId,
    /// Whose it is.
    pub agent: AgentName,
    /// What it says.
    pub prompt: String,
    /// When it recurs; none for one that fires once.
    pub cron: Option<String>,
    /// The time zone of the recurrence.
    pub time_zone: Option<String>,
    /// When it fires next.
    pub next_at: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it fired last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<Timestamp>,
}

/// Deletes a schedule of the caller's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelSchedule {
    /// Which one.
    pub schedule_id: ScheduleId,
    /// The same key from the same agent within a day is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Reads the newest output of the caller's harness, or of a child's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GetLogs {
    /// The caller unless given, or one of its children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// At most so many bytes; 16 KiB unless given, [`MAX_LOG`] at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
}

/// What a harness wrote to stdout and stderr, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    /// Whose.
    pub agent: AgentName,
    /// Whole lines, as far as they are text.
    pub output: String,
}

/// Reads the newest lines of the host's own log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GetHostJournal {
    /// At most so many lines; 200 unless given, 2000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}

/// The newest lines of the host's log, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostJournal {
    /// Where they come from.
    pub source: JournalSource,
    /// The lines, at most [`MAX_LOG`] bytes of them.
    pub journal: String,
}

/// Where lines of the host's log come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalSource {
    /// The system's journal, as far as it is about the daemon's unit.
    Journal,
    /// What the daemon remembers of its own log since it started.
    Daemon,
}

/// Asks what the caller may do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GetPermissions {}

/// What an agent may do, as the operator set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Its tool groups.
    pub groups: Vec<Group>,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
    /// Whom it may write to besides its parent and the operator; empty for everybody.
    pub recipients: Vec<Recipient>,
    /// Whether it is the root agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_root: bool,
}
