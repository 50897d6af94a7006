//! `list_agents`: the caller's children with how they stand; everybody with the capability
//! `query_agent_state` (M11).

use std::sync::Arc;

use hive_wire::{
    agent::{AgentList, ListAgents, ListedAgent},
    grants::Capability,
};

use super::Caller;
use crate::{host_commands::list, permissions::Grants, server::Reply};

pub(super) fn run(
    caller: &Caller,
    ListAgents {}: ListAgents,
    grants: &Grants,
    reply: Reply<AgentList>,
) {
    let own = caller.name.clone();
    let sees_all = grants.has(Capability::QueryAgentState);
    let (supervisor, harnesses) = (
        Arc::clone(&caller.supervisor),
        Arc::clone(&caller.harnesses),
    );
    caller.broker.submit(
        move |desk| {
            let shown = desk.roster.iter().filter(|agent| {
                agent.name != own && (sees_all || agent.parent.as_ref() == Some(&own))
            });
            let shown: Vec<_> = shown.cloned().collect();
            shown
                .into_iter()
                .map(|agent| list::with_inbox(desk, agent))
                .collect::<Result<Vec<_>, _>>()
        },
        move |outcome| {
            reply.send(outcome.map(|rows| {
                let rows = rows.into_iter().map(|(agent, inbox)| {
                    let stands = list::stands(&supervisor, &harnesses, &agent);
                    ListedAgent {
                        name: agent.name,
                        parent: agent.parent,
                        state: stands.state,
                        status_text: stands.status,
                        model: stands.model,
                        unread: inbox.unread,
                        inflight: inbox.inflight,
                        note: stands.note,
                    }
                });
                AgentList {
                    agents: rows.collect(),
                }
            }));
        },
    );
}
