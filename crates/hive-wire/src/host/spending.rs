//! What the hive spends, what it may spend, and who is paused.

use serde::{Deserialize, Serialize};

use crate::{AgentName, Timestamp};

/// What everybody spent at the gateway, and how the budgets stand.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spend {
    /// How many days back, today included; today alone by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
}

/// Sums by agent and day, newest day first, and today's budgets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendPage {
    /// The sums.
    pub days: Vec<DaySpend>,
    /// The hive's budget first, then those of the agents.
    pub budgets: Vec<BudgetState>,
}

/// What one agent spent on one day, by the host's own count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaySpend {
    /// The agent.
    pub agent: AgentName,
    /// The day in UTC, such as `2026-01-02`.
    pub day: String,
    /// Calls of the model.
    pub calls: u64,
    /// Read at the full price.
    pub input_tokens: u64,
    /// Produced.
    pub output_tokens: u64,
    /// Read from the cache.
    pub cache_read_tokens: u64,
    /// Written to the cache.
    pub cache_creation_tokens: u64,
    /// Millionths of a US dollar, by the price list.
    pub cost_micro_usd: u64,
}

/// How a budget stands today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetState {
    /// Whose it is; none for the whole hive's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Tokens spent, of every kind together.
    pub tokens: u64,
    /// The most that may be spent, raises included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_cap: Option<u64>,
    /// Millionths of a US dollar spent.
    pub cost_micro_usd: u64,
    /// The most that may be spent, raises included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_cap_micro_usd: Option<u64>,
}

/// Pauses an agent, or the whole hive: no turn begins until it is resumed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Pause {
    /// The agent; the whole hive without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
    /// Stop turns that run, too; their messages go back to the inbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    /// Why, for whoever looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Lets an agent, or the whole hive, begin turns again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Resume {
    /// The agent; the hive's own pause without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
}

/// What came of a pause or a resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Whether something changed.
    pub changed: bool,
    /// Every pause in force now.
    pub pauses: Vec<PauseRow>,
}

/// One pause in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRow {
    /// Who is paused; none for the whole hive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// What for.
    pub cause: PauseCause,
    /// Since when.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
}

/// What a pause is for. Each cause is ended by itself; `resume` ends all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseCause {
    /// The operator wants it.
    Operator,
    /// The day's budget is spent.
    Budget,
}

impl PauseCause {
    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Budget => "budget",
        }
    }
}
