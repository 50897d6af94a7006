use hive_wire::agent::{ListAgents as List, ListedAgent};
use schemars::JsonSchema;
use serde::Serialize;

use super::NoArgs;
use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Effect, Failure, Tool},
};

/// Lists the agents that one may start and stop, with how they stand (M11).
pub struct ListAgents;

/// The agents, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// One row each.
    agents: Vec<Agent>,
}

/// One agent.
#[derive(Debug, Serialize, JsonSchema)]
struct Agent {
    /// Its name.
    name: String,
    /// The agent above it; null for one below the operator.
    parent: Option<String>,
    /// Where it stands: `idle`, `thinking`, `compacting`, `rate_limited`, `needs_login`,
    /// `starting`, `stopped`, `paused`, `failed`, or `external` for one that runs elsewhere.
    state: &'static str,
    /// What it says of itself.
    status_text: String,
    /// Which model it uses; empty for one that runs elsewhere.
    model: String,
    /// Messages that wait for it.
    unread: u32,
    /// Messages that its turn is dealing with.
    inflight: u32,
    /// What there is to know, such as why it failed; empty when there is nothing.
    note: String,
}

impl Tool<Hyperhive> for ListAgents {
    const NAME: &'static str = "list_agents";
    const TITLE: &'static str = "List the agents below you";
    const DESCRIPTION: &'static str = "List the agents that are directly below you, with how each \
        of them stands and how much mail waits for it; with the capability query_agent_state, all \
        agents. Look here before you stop or start one, or when a child does not answer. Whom you \
        can write to is in list_peers.";
    const EFFECT: Effect = Effect::Reads;
    type Args = NoArgs;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, _: NoArgs, _: &Call) -> Result<Reply, Failure> {
        let listed = hive.call(&List {}).await?;
        Ok(Reply {
            agents: listed.agents.into_iter().map(shown).collect(),
        })
    }
}

fn shown(agent: ListedAgent) -> Agent {
    Agent {
        name: agent.name.to_string(),
        parent: agent.parent.map(|parent| parent.to_string()),
        state: agent.state.as_str(),
        status_text: agent.status_text,
        model: agent.model,
        unread: agent.unread,
        inflight: agent.inflight,
        note: agent.note,
    }
}
