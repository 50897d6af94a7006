//! `list`: the agents, by name (C1).

use std::sync::Arc;

use hive_store::{Mail, sqlite::AgentRecord};
use hive_wire::{
    WireError,
    agent::InboxStatus,
    host::{AgentRow, AgentState, Agents, List},
};

use super::Host;
use crate::broker::Desk;

pub(super) async fn run(host: Arc<Host>, List {}: List) -> Result<Agents, WireError> {
    let rows = host.broker.run(|desk| {
        let agents: Vec<AgentRecord> = desk.roster.iter().cloned().collect();
        agents
            .into_iter()
            .map(|agent| with_inbox(desk, agent))
            .collect::<Result<Vec<_>, _>>()
    });
    let agents = rows
        .await?
        .into_iter()
        .map(|(agent, inbox)| row(&host, agent, &inbox))
        .collect();
    Ok(Agents { agents })
}

/// An agent with how its inbox stands.
pub(super) fn with_inbox(
    desk: &mut Desk<'_>,
    agent: AgentRecord,
) -> Result<(AgentRecord, InboxStatus), WireError> {
    let inbox = desk.store(|tx| tx.inbox(&agent.name.clone().into()))?;
    Ok((agent, inbox))
}

/// An agent as the operator sees it.
pub(super) fn row(host: &Host, agent: AgentRecord, inbox: &InboxStatus) -> AgentRow {
    let address = match &host.config.hive.domain {
        Some(domain) => format!("{}@{domain}", agent.name),
        None => agent.name.to_string(),
    };
    AgentRow {
        state: AgentState::External,
        status: String::new(),
        runtime: agent.runtime,
        engine: String::new(),
        model: String::new(),
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
