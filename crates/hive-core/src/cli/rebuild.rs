//! `rebuild NAME`: makes everything of an agent anew, then stops and starts it.

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Rebuild};

use super::{failure::Failure, lifecycle, out::Out};

/// Arguments of `rebuild`.
#[derive(Debug, Args)]
pub struct RebuildArgs {
    /// Which agent.
    name: AgentName,
}

impl RebuildArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let agent = lifecycle::ask(host, &Rebuild { name: self.name }).await?;
        lifecycle::expect_running(&agent, out)
    }
}
