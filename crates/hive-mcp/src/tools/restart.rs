use hive_wire::agent::Restart as Command;

use super::child::{Args, Reply};
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Stops a child and starts it again (M11).
pub struct Restart;

impl Tool<Hyperhive> for Restart {
    const NAME: &'static str = "restart";
    const TITLE: &'static str = "Restart a child";
    const DESCRIPTION: &'static str = "Stop an agent that is directly below you and start it again. Use it \
        when a child hangs, or to let it begin with changed settings. What it was doing is broken \
        off; the mail of that turn comes again.";
    const EFFECT: Effect = Effect::Breaks;
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
