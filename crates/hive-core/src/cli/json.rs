//! What `--json` prints: `{"schema":1,…}`, ids as texts, times in RFC 3339.
//!
//! Scripts rely on these shapes. They are apart from the wire's types so that the wire can change
//! without them; fields may be added, and none is renamed or removed under the same schema.

mod approvals;
mod events;
mod grants;
mod harnesses;
mod messages;
mod spending;
mod words;

use hive_wire::{Timestamp, host};
use serde::Serialize;

pub(super) use self::{
    approvals::{ApprovalList, Decided, Requested},
    events::{EventLog, Gap, TailedEvent},
    grants::{PermissionList, ScheduleList},
    harnesses::{Control, Lifted, OneTimeLink, TotalList, TurnList},
    messages::{Acked, InboxDocument, MessageList, Receipt, Sent, Settled},
    spending::{Paused, SpendPage},
    words::{agent_state, message_state},
};
use super::failure::Report;

/// The number of the shapes below.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<T> {
    schema: u32,
    #[serde(flatten)]
    view: T,
}

/// One JSON object on one line, with its schema number first.
///
/// Characters that a terminal might obey are written as escapes, which says the same in JSON.
pub(super) fn document<T: Serialize>(view: T) -> serde_json::Result<String> {
    let schema = SCHEMA;
    let line = serde_json::to_string(&Document { schema, view })?;
    let steers = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !line.contains(steers) {
        return Ok(line);
    }
    let mut safe = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        if steers(c) {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

/// What went wrong, on stderr.
#[derive(Serialize)]
pub(super) struct ErrorDocument<'a> {
    error: ErrorView<'a>,
}

#[derive(Serialize)]
struct ErrorView<'a> {
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

impl<'a> From<&'a Report> for ErrorDocument<'a> {
    fn from(report: &'a Report) -> Self {
        Self {
            error: ErrorView {
                code: report.code,
                message: &report.message,
                hint: &report.hint,
            },
        }
    }
}

/// The daemon: `status`.
#[derive(Serialize)]
pub(super) struct Status<'a> {
    version: &'a str,
    pid: u32,
    started_at: Timestamp,
    hive: Option<&'a str>,
    swarm: Option<&'a str>,
    root: &'a str,
    dashboard: &'a str,
    sqlite: &'a str,
    agents: u32,
    undelivered: u32,
    dead: u32,
    runtime: &'static str,
    engine: &'a str,
    rehearsed: bool,
    paused: Option<&'a str>,
    spent_today: Option<&'a host::BudgetState>,
}

impl<'a> From<&'a host::HiveInfo> for Status<'a> {
    fn from(info: &'a host::HiveInfo) -> Self {
        Self {
            version: &info.version,
            pid: info.pid,
            started_at: info.started_at,
            hive: info.hive.as_deref(),
            swarm: info.swarm.as_deref(),
            root: &info.root,
            dashboard: &info.dashboard,
            sqlite: &info.sqlite,
            agents: info.agents,
            undelivered: info.undelivered,
            dead: info.dead,
            runtime: info.defaults.runtime.as_str(),
            engine: &info.defaults.engine,
            rehearsed: info.defaults.rehearsed,
            paused: info.paused.as_deref(),
            spent_today: info.spent_today.as_ref(),
        }
    }
}

/// The agents: `list`.
#[derive(Serialize)]
pub(super) struct AgentList<'a> {
    agents: Vec<Agent<'a>>,
    rehearsed: bool,
}

impl<'a> From<&'a host::Agents> for AgentList<'a> {
    fn from(list: &'a host::Agents) -> Self {
        Self {
            agents: list.agents.iter().map(Agent::from).collect(),
            rehearsed: list.rehearsed,
        }
    }
}

/// One agent that was made: `spawn`.
#[derive(Serialize)]
pub(super) struct Spawned<'a> {
    agent: Agent<'a>,
}

impl<'a> From<&'a host::AgentRow> for Spawned<'a> {
    fn from(row: &'a host::AgentRow) -> Self {
        Self { agent: row.into() }
    }
}

#[derive(Serialize)]
struct Agent<'a> {
    name: &'a str,
    state: &'static str,
    status: &'a str,
    runtime: &'static str,
    network: Option<&'static str>,
    engine: &'a str,
    model: &'a str,
    parent: Option<&'a str>,
    unread: u32,
    inflight: u32,
    port: u16,
    address: &'a str,
    socket: &'a str,
    created_at: Timestamp,
    pid: Option<u32>,
    note: &'a str,
    stale: bool,
    restarts: u32,
    restarted_at: Option<Timestamp>,
}

impl<'a> From<&'a host::AgentRow> for Agent<'a> {
    fn from(row: &'a host::AgentRow) -> Self {
        Self {
            name: row.name.as_str(),
            state: agent_state(row.state),
            status: &row.status,
            runtime: row.runtime.as_str(),
            network: row.network.map(host::Network::as_str),
            engine: &row.engine,
            model: &row.model,
            parent: row.parent.as_ref().map(hive_wire::AgentName::as_str),
            unread: row.unread,
            inflight: row.inflight,
            port: row.port,
            address: &row.address,
            socket: &row.socket,
            created_at: row.created_at,
            pid: row.pid,
            note: &row.note,
            stale: row.stale,
            restarts: row.restarts,
            restarted_at: row.restarted_at,
        }
    }
}

/// An agent that is gone: `destroy`.
#[derive(Serialize)]
pub(super) struct Destroyed<'a> {
    pub(super) name: &'a str,
    pub(super) kept_messages: u32,
    pub(super) purged: bool,
}

/// Questions: `questions`.
#[derive(Serialize)]
pub(super) struct QuestionList<'a> {
    questions: Vec<Question<'a>>,
}

#[derive(Serialize)]
struct Question<'a> {
    id: String,
    asker: &'a str,
    target: &'a str,
    question: &'a str,
    options: &'a [String],
    multi: bool,
    asked_at: Timestamp,
    expires_at: Option<Timestamp>,
    answer: Option<&'a str>,
    answered_at: Option<Timestamp>,
}

impl<'a> From<&'a host::QuestionList> for QuestionList<'a> {
    fn from(list: &'a host::QuestionList) -> Self {
        let view = |row: &'a host::QuestionRow| Question {
            id: row.question_id.to_string(),
            asker: row.asker.as_str(),
            target: &row.target,
            question: &row.question,
            options: &row.options,
            multi: row.multi,
            asked_at: row.asked_at,
            expires_at: row.expires_at,
            answer: row.answer.as_deref(),
            answered_at: row.answered_at,
        };
        Self {
            questions: list.questions.iter().map(view).collect(),
        }
    }
}

/// A question that has its answer: `answer`.
#[derive(Serialize)]
pub(super) struct Answered {
    pub(super) id: String,
}

#[cfg(test)]
mod tests;
