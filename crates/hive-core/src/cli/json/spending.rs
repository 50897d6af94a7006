//! The shapes of the verbs about money and pauses: `spend`, `pause`, `resume`.

use hive_wire::{AgentName, Timestamp, host};
use serde::Serialize;

/// What was spent: `spend`.
#[derive(Serialize)]
pub(in crate::cli) struct SpendPage<'a> {
    days: &'a [host::DaySpend],
    budgets: Vec<Budget<'a>>,
}

#[derive(Serialize)]
struct Budget<'a> {
    agent: Option<&'a str>,
    tokens: u64,
    tokens_cap: Option<u64>,
    cost_micro_usd: u64,
    cost_cap_micro_usd: Option<u64>,
}

impl<'a> From<&'a host::SpendPage> for SpendPage<'a> {
    fn from(page: &'a host::SpendPage) -> Self {
        let budget = |budget: &'a host::BudgetState| Budget {
            agent: budget.agent.as_ref().map(AgentName::as_str),
            tokens: budget.tokens,
            tokens_cap: budget.tokens_cap,
            cost_micro_usd: budget.cost_micro_usd,
            cost_cap_micro_usd: budget.cost_cap_micro_usd,
        };
        Self {
            days: &page.days,
            budgets: page.budgets.iter().map(budget).collect(),
        }
    }
}

/// The pauses in force: `pause`, `resume`.
#[derive(Serialize)]
pub(in crate::cli) struct Paused<'a> {
    changed: bool,
    pauses: Vec<Pause<'a>>,
}

#[derive(Serialize)]
struct Pause<'a> {
    agent: Option<&'a str>,
    cause: &'static str,
    since: Timestamp,
    reason: &'a str,
}

impl<'a> From<&'a host::Paused> for Paused<'a> {
    fn from(paused: &'a host::Paused) -> Self {
        let pause = |row: &'a host::PauseRow| Pause {
            agent: row.agent.as_ref().map(AgentName::as_str),
            cause: row.cause.as_str(),
            since: row.since,
            reason: &row.reason,
        };
        Self {
            changed: paused.changed,
            pauses: paused.pauses.iter().map(pause).collect(),
        }
    }
}
