//! `list_peers`: everybody else in the hive.

use std::sync::Arc;

use hive_wire::report::{ListPeers, Peer, Peers};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, ListPeers {}: ListPeers, reply: Reply<Peers>) {
    let own = caller.name.clone();
    let harnesses = Arc::clone(&caller.harnesses);
    caller.broker.submit(
        move |desk| {
            let others = desk.roster.iter().filter(|agent| agent.name != own);
            Ok(others
                .map(|agent| (agent.name.clone(), agent.parent.clone()))
                .collect::<Vec<_>>())
        },
        move |found| {
            reply.send(found.map(|others| {
                Peers {
                    peers: others
                        .into_iter()
                        .map(|(name, parent)| Peer {
                            running: harnesses.is_connected(&name),
                            status_text: harnesses.line(&name).text,
                            name,
                            parent,
                        })
                        .collect(),
                }
            }));
        },
    );
}
