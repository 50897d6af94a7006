//! `list`: the agents, by name (C1).

use std::sync::Arc;

use hive_store::{Mail, sqlite::AgentRecord};
use hive_wire::{
    WireError,
    agent::InboxStatus,
    host::{AgentRow, AgentState, Agents, List, Runtime},
};

use super::Host;
use crate::{
    broker::Desk,
    harnesses::{Harnesses, state_of},
    links,
    supervisor::{Phase, Supervisor},
};

pub(crate) async fn run(host: Arc<Host>, List {}: List) -> Result<Agents, WireError> {
    let agents = everybody(&host)
        .await?
        .into_iter()
        .map(|(agent, inbox)| row(&host, agent, &inbox))
        .collect();
    Ok(Agents {
        agents,
        rehearsed: host.supervisor.model().rehearsed,
    })
}

/// Every agent with how its inbox stands, by name.
pub(crate) async fn everybody(host: &Host) -> Result<Vec<(AgentRecord, InboxStatus)>, WireError> {
    let rows = host.broker.run(|desk| {
        let agents: Vec<AgentRecord> = desk.roster.iter().cloned().collect();
        agents
            .into_iter()
            .map(|agent| with_inbox(desk, agent))
            .collect()
    });
    rows.await
}

/// How an agent stands, as far as its process and its harness tell.
pub(crate) struct Stands {
    pub(crate) state: AgentState,
    pub(crate) status: String,
    pub(crate) engine: String,
    pub(crate) model: String,
    pub(crate) pid: Option<u32>,
    pub(crate) note: String,
}

/// How an agent stands now.
pub(crate) fn stands(
    supervisor: &Supervisor,
    harnesses: &Harnesses,
    agent: &AgentRecord,
) -> Stands {
    let facts = harnesses.facts(agent);
    let report = facts.report.as_ref();
    let standing = supervisor.standing(&agent.name);
    let state = match &standing {
        // Only its harness can say what it does.
        Some(standing) if standing.phase != Phase::Running => standing.phase.state(),
        Some(_) if !facts.connected => AgentState::Starting,
        _ => state_of(agent.runtime, &facts),
    };
    Stands {
        state,
        engine: report
            .and_then(|report| report.engine.clone())
            .filter(|engine| !engine.is_empty())
            .unwrap_or_else(|| supervisor.engine_of(agent)),
        model: report
            .map(|report| report.model.clone())
            .filter(|model| !model.is_empty())
            .unwrap_or_else(|| supervisor.model_of(agent)),
        pid: standing.as_ref().and_then(|standing| standing.pid),
        note: standing
            .map(|standing| standing.problem)
            .filter(|problem| !problem.is_empty())
            .or(facts.paused)
            .unwrap_or_default(),
        status: facts.line.text,
    }
}

/// An agent with how its inbox stands.
pub(crate) fn with_inbox(
    desk: &mut Desk<'_>,
    agent: AgentRecord,
) -> Result<(AgentRecord, InboxStatus), WireError> {
    let inbox = desk.store(|tx| tx.inbox(&agent.name.clone().into()))?;
    Ok((agent, inbox))
}

/// An agent as the operator sees it.
pub(crate) fn row(host: &Host, agent: AgentRecord, inbox: &InboxStatus) -> AgentRow {
    let address = match &host.config.hive.domain {
        Some(domain) => format!("{}@{domain}", agent.name),
        None => agent.name.to_string(),
    };
    let own = host.approvals.configs.get(&agent.name);
    let stands = stands(&host.supervisor, &host.harnesses, &agent);
    AgentRow {
        stale: host.supervisor.is_stale(&agent),
        links: match agent.runtime {
            Runtime::None => Vec::new(),
            _ => links::read(&host.paths.agent_dirs(&agent.name).state),
        },
        state: stands.state,
        engine: stands.engine,
        model: stands.model,
        pid: stands.pid,
        note: stands.note,
        status: stands.status,
        network: (agent.runtime != Runtime::None)
            .then(|| host.config.agents.network(own.network, agent.runtime)),
        restarts: agent.run.restarts,
        restarted_at: agent.run.restarted_at,
        runtime: agent.runtime,
        parent: agent.parent,
        unread: inbox.unread,
        inflight: inbox.inflight,
        port: agent.port,
        address,
        socket: host.socket_path(&agent.name).display().to_string(),
        created_at: agent.created_at,
        name: agent.name,
    }
}
