//! `start NAME`: starts an agent that is stopped or failed.

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Start};

use super::{failure::Failure, lifecycle, out::Out};

/// Arguments of `start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Which agent.
    name: AgentName,
}

impl StartArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let agent = lifecycle::ask(host, &Start { name: self.name }).await?;
        lifecycle::expect_running(&agent, out)
    }
}
