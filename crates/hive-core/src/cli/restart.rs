//! `restart NAME`: stops an agent and starts it again.

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Restart};

use super::{failure::Failure, lifecycle, out::Out};

/// Arguments of `restart`.
#[derive(Debug, Args)]
pub struct RestartArgs {
    /// Which agent.
    name: AgentName,
}

impl RestartArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let agent = lifecycle::ask(host, &Restart { name: self.name }).await?;
        lifecycle::expect_running(&agent, out)
    }
}
