use hive_wire::agent::RequestApplyCommit as Request;
use schemars::JsonSchema;
use serde::Deserialize;

use super::approval::Reply;
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Asks the operator to apply a commit of an agent's proposed configuration (M11).
pub struct RequestApplyCommit;

/// Which commit of whose configuration, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The agent whose configuration it is.
    agent: String,
    /// The whole hash of a commit in its proposed repository, or the name of a branch there. A
    /// branch is looked up now: what is committed later needs another request.
    commit_ref: String,
    /// Why, in a few sentences for the operator: what changes and what could go wrong.
    reason: String,
    /// Your own name for this request. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

impl Tool<Hyperhive> for RequestApplyCommit {
    const NAME: &'static str = "request_apply_commit";
    const TITLE: &'static str = "Ask for a changed configuration";
    const DESCRIPTION: &'static str = "Ask the operator to apply a commit of an agent's proposed \
        configuration. Commit the change first, then name the commit here. Nothing changes until \
        the operator says yes; this returns at once. The decision comes later as a message from \
        `system` with this approval_id. One request for one purpose: small diffs are read, large \
        ones are refused.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let request = Request {
            agent: args.agent,
            commit_ref: args.commit_ref,
            reason: args.reason,
            key: key(args.key)?,
        };
        Ok(hive.call(&request).await?.into())
    }
}
