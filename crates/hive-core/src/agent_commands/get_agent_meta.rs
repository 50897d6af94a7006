//! `get_agent_meta`: who an agent is (M10).

use std::sync::Arc;

use hive_wire::report::{AgentMeta, GetAgentMeta};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: GetAgentMeta, reply: Reply<AgentMeta>) {
    let own = caller.name.clone();
    let harnesses = Arc::clone(&caller.harnesses);
    let config = Arc::clone(&caller.config);
    caller.broker.submit(
        move |desk| {
            let wanted = command.name.as_deref().unwrap_or(own.as_str());
            Ok(desk.roster.find(wanted)?.name.clone())
        },
        move |found| {
            reply.send(found.map(|name| {
                let line = harnesses.line(&name);
                AgentMeta {
                    hyperhive_rev: env!("CARGO_PKG_VERSION").to_owned(),
                    running: harnesses.is_connected(&name),
                    status_text: line.text,
                    status_set_at: line.set_at,
                    hive_name: config.hive.name.clone(),
                    swarm_name: config.hive.swarm.clone(),
                    name,
                }
            }));
        },
    );
}
