use hive_wire::agent::RequestSpawn as Request;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{approval::Reply, child::agent_name};
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Asks the operator for a new agent (M11).
pub struct RequestSpawn;

/// What kind of agent, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Its name: a lower-case letter, then letters, digits and `-`.
    name: String,
    /// The agent above it; you unless given.
    #[serde(default)]
    parent: Option<String>,
    /// Its whole `agent.toml`, for more than a model and an engine; at most 64 KiB.
    #[serde(default)]
    config: Option<String>,
    /// Its model, when there is no config.
    #[serde(default)]
    model: Option<String>,
    /// Its engine, when there is no config: `auto`, `claude` or `native`.
    #[serde(default)]
    engine: Option<String>,
    /// Why it is needed, in a few sentences for the operator: its role, what it may touch, and why
    /// nobody who is there can do it.
    reason: String,
    /// Your own name for this request. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

impl Tool<Hyperhive> for RequestSpawn {
    const NAME: &'static str = "request_spawn";
    const TITLE: &'static str = "Ask for a new agent";
    const DESCRIPTION: &'static str = "Ask the operator for a new agent. Nothing is made until the \
        operator says yes; this returns at once. The decision comes later as a message from \
        `system` with this approval_id, so do what can be done without it and end the turn. Ask \
        only for a role that nobody has, once, and say honestly what it is for.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let parent = args.parent.as_deref().map(agent_name).transpose()?;
        let request = Request {
            name: args.name,
            parent,
            config: args.config,
            model: args.model,
            engine: args.engine,
            runtime: None,
            reason: args.reason,
            key: key(args.key)?,
        };
        Ok(hive.call(&request).await?.into())
    }
}
