//! `agent_state`: how an agent stands (T28).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AgentSnapshot, GetAgentState},
};

use super::{Host, list};

pub(crate) async fn run(
    host: Arc<Host>,
    command: GetAgentState,
) -> Result<AgentSnapshot, WireError> {
    let name = command.name;
    let (agent, inbox) = host
        .broker
        .run(move |desk| {
            let agent = desk.roster.find(name.as_str())?.clone();
            list::with_inbox(desk, agent)
        })
        .await?;
    let row = list::row(&host, agent.clone(), &inbox);
    let facts = host.harnesses.facts(&agent);
    let report = facts.report.as_ref();
    Ok(AgentSnapshot {
        name: agent.name,
        state: row.state,
        connected: facts.connected,
        turn_state: report.map(|report| report.turn_state).unwrap_or_default(),
        turn_state_since: report.map(|report| report.since),
        status: report.map(|report| report.status),
        model: row.model,
        engine: row.engine,
        engine_version: report
            .and_then(|report| report.engine_version.clone())
            .unwrap_or_default(),
        context_tokens: report.map_or(0, |report| report.context_tokens),
        context_window_tokens: report.map_or(0, |report| report.window),
        current_tool: report.and_then(|report| report.current_tool.clone()),
        unread: inbox.unread,
        inflight: inbox.inflight,
        status_text: facts.line.text,
        status_set_at: facts.line.set_at,
        credential: facts.credential,
        held_until: facts.held_until,
        resets_at: facts.resets_at,
        pending_controls: facts.pending,
        rehearsed: facts.report.is_some_and(|report| report.rehearsed)
            || (row.pid.is_some() && host.supervisor.model().rehearsed),
    })
}
