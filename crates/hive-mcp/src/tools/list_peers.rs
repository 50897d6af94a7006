use hive_wire::agent::ListPeers as List;
use schemars::JsonSchema;
use serde::Serialize;

use super::NoArgs;
use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Effect, Failure, Tool},
};

/// Lists everybody else in the hive.
pub struct ListPeers;

/// Everybody else.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The agents, by name.
    peers: Vec<Peer>,
}

/// Another agent.
#[derive(Debug, Serialize, JsonSchema)]
struct Peer {
    /// Its name, as `send` takes it.
    name: String,
    /// Whom it reports to; the operator when there is none.
    parent: Option<String>,
    /// Whether it runs now; mail to one that does not run waits for it.
    running: bool,
    /// What it says of itself.
    status_text: String,
}

impl Tool<Hyperhive> for ListPeers {
    const NAME: &'static str = "list_peers";
    const TITLE: &'static str = "List the other agents";
    const DESCRIPTION: &'static str = "List the other agents of the hive with their parents and \
        what they say of themselves. Use it to find out whom to send to.";
    const EFFECT: Effect = Effect::Reads;
    type Args = NoArgs;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, _: NoArgs, _: &Call) -> Result<Reply, Failure> {
        let listed = hive.call(&List {}).await?;
        let peers = listed.peers.into_iter().map(|peer| Peer {
            name: peer.name.to_string(),
            parent: peer.parent.map(|parent| parent.to_string()),
            running: peer.running,
            status_text: peer.status_text,
        });
        Ok(Reply {
            peers: peers.collect(),
        })
    }
}
