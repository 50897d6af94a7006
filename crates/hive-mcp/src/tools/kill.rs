use hive_wire::agent::Kill as Command;

use super::child::{Args, Reply};
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Stops a child (M11).
pub struct Kill;

impl Tool<Hyperhive> for Kill {
    const NAME: &'static str = "kill";
    const TITLE: &'static str = "Stop a child";
    const DESCRIPTION: &'static str = "Stop an agent that is directly below you, and leave it stopped. \
        What it was doing is broken off; its mail is kept and comes again when it is started. Use \
        it when a child does harm, loops or is not needed for now. Ask it first, with send, when \
        there is time.";
    const EFFECT: Effect = Effect::Removes;
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
