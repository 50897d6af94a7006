//! `GET /api/state`: how everything stands, with the place in the event log to follow on from.

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, response::Response};
use hive_store::sqlite::AgentRecord;
use hive_wire::{
    AgentName, ErrorCode, Timestamp, WireError,
    agent::InboxStatus,
    host::{AgentRow, AgentSnapshot, DashboardLink, GetAgentState, HiveInfo, Info, TurnTotals},
    report::TurnState,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Site, events, input::Target, output, own};
use crate::{
    host_commands::{Host, agent_state, info, list, turn_totals},
    links,
};

/// One agent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentPage")]
pub(super) struct AgentPage {
    schema: u32,
    /// Events after this are news to whoever holds this answer.
    position: String,
    /// Messages that wait or are held.
    queue: u32,
    #[serde(flatten)]
    agent: AgentSnapshot,
    /// The process and how it does, as in a row of the fleet.
    #[serde(flatten)]
    row: Extract,
    links: Vec<DashboardLink>,
}

/// What of a row an agent's own page shows besides.
#[derive(Serialize, JsonSchema)]
struct Extract {
    runtime: hive_wire::host::Runtime,
    note: String,
    parent: Option<AgentName>,
    /// The port of its page, and what it serves there under `/own/`.
    port: u16,
    own: Vec<String>,
}

/// The whole hive.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HiveState")]
pub(super) struct HivePage {
    schema: u32,
    position: String,
    hive: HiveInfo,
    /// Whether a rehearsed model answers instead of a real one.
    rehearsed: bool,
    /// The agent that keeps the hive going; empty for none.
    root_agent: String,
    agents: Vec<Row>,
}

/// One agent in the fleet.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FleetRow")]
struct Row {
    #[serde(flatten)]
    agent: AgentRow,
    turn_state: TurnState,
    turn_state_since: Option<Timestamp>,
    current_tool: Option<String>,
    context_tokens: u64,
    context_window_tokens: u64,
    held_until: Option<Timestamp>,
    turns_today: u64,
    cost_today_micro_usd: u64,
}

pub(super) async fn agent(State(site): State<Site>, Target(name): Target) -> Response {
    output::answer(one(&site.host, name).await)
}

pub(super) async fn hive(State(site): State<Site>) -> Response {
    output::answer(whole(&site.host).await)
}

async fn one(host: &Arc<Host>, name: AgentName) -> Result<AgentPage, WireError> {
    // Before the snapshot: what happens in between comes twice rather than never.
    let position = events::id(host.events.position());
    let (record, _) = host.find(name.clone()).await?;
    let agent = agent_state::run(Arc::clone(host), GetAgentState { name: name.clone() }).await?;
    let state = host.paths.agent_dirs(&name).state;
    let read = host.tasks.spawn_blocking(move || links::read(&state));
    let links = read
        .await
        .map_err(|error| WireError::new(ErrorCode::Storage, error.to_string()))?;
    Ok(AgentPage {
        schema: 1,
        position,
        queue: agent.unread + agent.inflight,
        agent,
        row: Extract {
            runtime: record.runtime,
            note: host
                .supervisor
                .standing(&name)
                .map(|standing| standing.problem)
                .unwrap_or_default(),
            parent: record.parent,
            port: record.port,
            own: own::names(&host.approvals.configs.get(&name)),
        },
        links,
    })
}

async fn whole(host: &Arc<Host>) -> Result<HivePage, WireError> {
    let position = events::id(host.events.position());
    let hive = info::run(Arc::clone(host), Info {}).await?;
    let agents = list::everybody(host).await?;
    let today = TurnTotals {
        name: None,
        days: 1,
    };
    let totals = turn_totals::run(Arc::clone(host), today).await?.totals;
    let spent: BTreeMap<AgentName, (u64, u64)> = totals
        .into_iter()
        .map(|total| (total.agent, (total.turns, total.cost_micro_usd)))
        .collect();
    let rows = agents.into_iter().map(|(agent, inbox)| {
        let spent = spent.get(&agent.name).copied().unwrap_or_default();
        row(host, agent, &inbox, spent)
    });
    Ok(HivePage {
        schema: 1,
        position,
        hive,
        rehearsed: host.supervisor.model().rehearsed,
        root_agent: host.config.hive.root_agent.clone(),
        agents: rows.collect(),
    })
}

fn row(host: &Host, agent: AgentRecord, inbox: &InboxStatus, spent: (u64, u64)) -> Row {
    let facts = host.harnesses.facts(&agent);
    let report = facts.report.as_ref();
    Row {
        turn_state: report.map(|report| report.turn_state).unwrap_or_default(),
        turn_state_since: report.map(|report| report.since),
        current_tool: report.and_then(|report| report.current_tool.clone()),
        context_tokens: report.map_or(0, |report| report.context_tokens),
        context_window_tokens: report.map_or(0, |report| report.window),
        held_until: facts.held_until,
        turns_today: spent.0,
        cost_today_micro_usd: spent.1,
        agent: list::row(host, agent, inbox),
    }
}
