//! The shapes of the verbs about harnesses: `interrupt` and its like, `lift`, `link`, `turns`,
//! `stats`.

use hive_wire::{AgentName, Timestamp, host, report::ToolCount};
use serde::Serialize;

/// What came of a request to a harness: `interrupt`, `compact`, `new-session`, `model`, `login`.
#[derive(Serialize)]
pub(in crate::cli) struct Control<'a> {
    name: &'a str,
    action: &'static str,
    state: &'static str,
    note: Option<&'a str>,
}

impl<'a> Control<'a> {
    pub(in crate::cli) fn new(
        name: &'a AgentName,
        action: &'static str,
        outcome: &'a host::ControlOutcome,
    ) -> Self {
        Self {
            name: name.as_str(),
            action,
            state: match outcome.state {
                host::ControlState::Done => "done",
                host::ControlState::Queued => "queued",
            },
            note: outcome.note.as_deref(),
        }
    }
}

/// A limit that was lifted: `lift`.
#[derive(Serialize)]
pub(in crate::cli) struct Lifted<'a> {
    credential: &'a str,
    was_held: bool,
    released: u32,
}

impl<'a> From<&'a host::Lifted> for Lifted<'a> {
    fn from(lifted: &'a host::Lifted) -> Self {
        Self {
            credential: &lifted.credential,
            was_held: lifted.was_held,
            released: lifted.released,
        }
    }
}

/// A link: `link`.
#[derive(Serialize)]
pub(in crate::cli) struct OneTimeLink<'a> {
    url: &'a str,
    expires_at: Timestamp,
}

impl<'a> From<&'a host::OneTimeLink> for OneTimeLink<'a> {
    fn from(link: &'a host::OneTimeLink) -> Self {
        Self {
            url: &link.url,
            expires_at: link.expires_at,
        }
    }
}

/// Turns: `turns`.
#[derive(Serialize)]
pub(in crate::cli) struct TurnList<'a> {
    turns: Vec<Turn<'a>>,
    next: Option<String>,
}

#[derive(Serialize)]
struct Turn<'a> {
    id: String,
    agent: &'a str,
    turn: &'a str,
    kind: &'static str,
    started_at: Timestamp,
    duration_ms: u64,
    engine_ms: u64,
    model: &'a str,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_creation_tokens: u64,
    cost_micro_usd: u64,
    context_tokens: u64,
    window: u64,
    outcome: &'a str,
    note: Option<&'a str>,
    session_id: Option<&'a str>,
    messages: Vec<String>,
    tools: &'a [ToolCount],
}

impl<'a> From<&'a host::TurnPage> for TurnList<'a> {
    fn from(page: &'a host::TurnPage) -> Self {
        Self {
            turns: page.turns.iter().map(Turn::from).collect(),
            next: page.next.map(|next| next.to_string()),
        }
    }
}

impl<'a> From<&'a host::TurnRow> for Turn<'a> {
    fn from(row: &'a host::TurnRow) -> Self {
        let counts = &row.counts;
        Self {
            id: row.turn_row_id.to_string(),
            agent: row.agent.as_str(),
            turn: counts.turn.as_str(),
            kind: counts.kind.as_str(),
            started_at: counts.started_at,
            duration_ms: counts.duration_ms,
            engine_ms: counts.engine_ms,
            model: &counts.model,
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            cache_read_tokens: counts.cache_read_tokens,
            cache_creation_tokens: counts.cache_creation_tokens,
            cost_micro_usd: counts.cost_micro_usd,
            context_tokens: counts.context_tokens,
            window: counts.window,
            outcome: &counts.outcome,
            note: counts.note.as_deref(),
            session_id: counts.session_id.as_deref(),
            messages: counts.messages.iter().map(ToString::to_string).collect(),
            tools: &counts.tools,
        }
    }
}

/// Sums: `stats`.
#[derive(Serialize)]
pub(in crate::cli) struct TotalList<'a> {
    totals: &'a [host::DayTotal],
    more: bool,
}

impl<'a> From<&'a host::TotalsPage> for TotalList<'a> {
    fn from(page: &'a host::TotalsPage) -> Self {
        Self {
            totals: &page.totals,
            more: page.more,
        }
    }
}
