//! `GET /api/state`: how everything stands, with the place in the event log to follow on from.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use hive_wire::{
    WireError,
    host::{AgentRow, AgentSnapshot, GetAgentState, HiveInfo, Info, List},
};
use serde::Serialize;

use super::{Site, events, input::Target, output};
use crate::host_commands::{Host, agent_state, info, list};

/// One agent.
#[derive(Serialize)]
struct AgentPage {
    schema: u32,
    /// Events after this are news to whoever holds this answer.
    position: String,
    /// Messages that wait or are held.
    queue: u32,
    #[serde(flatten)]
    agent: AgentSnapshot,
}

/// The whole hive.
#[derive(Serialize)]
struct HivePage {
    schema: u32,
    position: String,
    hive: HiveInfo,
    agents: Vec<AgentRow>,
}

pub(super) async fn agent(State(site): State<Site>, Target(name): Target) -> Response {
    // Before the snapshot: what happens in between comes twice rather than never.
    let position = events::id(site.host.events.position());
    let state = agent_state::run(Arc::clone(&site.host), GetAgentState { name }).await;
    output::answer(state.map(|agent| AgentPage {
        schema: 1,
        position,
        queue: agent.unread + agent.inflight,
        agent,
    }))
}

pub(super) async fn hive(State(site): State<Site>) -> Response {
    let position = events::id(site.host.events.position());
    output::answer(whole(Arc::clone(&site.host), position).await)
}

async fn whole(host: Arc<Host>, position: String) -> Result<HivePage, WireError> {
    Ok(HivePage {
        schema: 1,
        position,
        hive: info::run(Arc::clone(&host), Info {}).await?,
        agents: list::run(host, List {}).await?.agents,
    })
}
