use hive_wire::agent::Start as Command;

use super::child::{Args, Reply};
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Starts a child (M11).
pub struct Start;

impl Tool<Hyperhive> for Start {
    const NAME: &'static str = "start";
    const TITLE: &'static str = "Start a child";
    const DESCRIPTION: &'static str = "Start an agent that is directly below you and that is stopped or has \
        failed. It goes on with the mail that waits for it. One that runs already is left as it \
        is.";
    const EFFECT: Effect = Effect::Sets;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let (name, own) = args.parse()?;
        let command = Command {
            name,
            key: key(own)?,
        };
        Ok(hive.call_at_length(&command).await?.into())
    }
}
