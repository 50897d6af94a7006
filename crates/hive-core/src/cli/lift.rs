//! `lift NAME`: ends the wait of the credential that an agent is on, for everybody on it (T6).

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Lift, text::printable};

use super::{failure::Failure, json, out::Out};

/// Arguments of `lift`.
#[derive(Debug, Args)]
pub struct LiftArgs {
    /// The agent.
    name: AgentName,
}

impl LiftArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let lifted = host.call(&Lift { name: self.name }).await?;
        if out.is_json() {
            return out.json(json::Lifted::from(&lifted));
        }
        let credential = printable(&lifted.credential);
        if !lifted.was_held {
            out.note("no limit was known; its agents were told to go on all the same");
        }
        let told = lifted.released;
        out.line(format_args!(
            "the credential `{credential}` is free; agents told: {told}"
        ))
    }
}
