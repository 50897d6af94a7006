//! `compact NAME`: compacts an agent's session (T23).

use clap::Args;
use hive_wire::{AgentName, client::Client, control::ControlAction};

use super::{control, failure::Failure, out::Out};

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// The agent.
    name: AgentName,
}

impl CompactArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        control::ask(self.name, ControlAction::Compact, host, out).await
    }
}
