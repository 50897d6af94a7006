use hive_wire::agent::GetAgentMeta as Get;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Effect, Failure, Tool},
};

/// Says who an agent is (M10).
pub struct GetAgentMeta;

/// Who.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// An agent's name; yourself unless given.
    #[serde(default)]
    name: Option<String>,
}

/// Who it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its name.
    name: String,
    /// The version of the hive.
    hyperhive_rev: String,
    /// Whether it runs now; mail to one that does not run waits for it.
    running: bool,
    /// What it says of itself.
    status_text: String,
    /// When it said so.
    status_set_at: Option<String>,
    /// The name of this hive.
    #[serde(skip_serializing_if = "Option::is_none")]
    hive_name: Option<String>,
    /// The swarm that this hive belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    swarm_name: Option<String>,
}

impl Tool<Hyperhive> for GetAgentMeta {
    const NAME: &'static str = "get_agent_meta";
    const TITLE: &'static str = "Look at an agent";
    const DESCRIPTION: &'static str = "Say who an agent is, whether it runs and what its status \
        is. Without a name it says so of yourself, with the names of your hive and swarm.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let meta = hive.call(&Get { name: args.name }).await?;
        Ok(Reply {
            name: meta.name.to_string(),
            hyperhive_rev: meta.hyperhive_rev,
            running: meta.running,
            status_text: meta.status_text,
            status_set_at: meta.status_set_at.map(|at| at.to_string()),
            hive_name: meta.hive_name,
            swarm_name: meta.swarm_name,
        })
    }
}
