//! `kill NAME`: stops an agent and leaves it stopped.

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Kill};

use super::{failure::Failure, json, lifecycle, out::Out};

/// Arguments of `kill`.
#[derive(Debug, Args)]
pub struct KillArgs {
    /// Which agent.
    name: AgentName,
}

impl KillArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let agent = lifecycle::ask(host, &Kill { name: self.name }).await?;
        if out.is_json() {
            return out.json(json::Spawned::from(&agent));
        }
        lifecycle::show(&agent, out)
    }
}
