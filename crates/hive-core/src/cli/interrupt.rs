//! `interrupt NAME`: stops the running turn; it keeps its messages, and the next one joins it (C18).

use clap::Args;
use hive_wire::{AgentName, client::Client, control::ControlAction};

use super::{control, failure::Failure, out::Out};

/// Arguments of `interrupt`.
#[derive(Debug, Args)]
pub struct InterruptArgs {
    /// The agent.
    name: AgentName,
}

impl InterruptArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        control::ask(self.name, ControlAction::Interrupt, host, out).await
    }
}
