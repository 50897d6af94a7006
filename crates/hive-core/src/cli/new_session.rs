//! `new-session NAME`: lets the next turn begin a new session (T19).

use clap::Args;
use hive_wire::{AgentName, client::Client, control::ControlAction};

use super::{control, failure::Failure, out::Out};

/// Arguments of `new-session`.
#[derive(Debug, Args)]
pub struct NewSessionArgs {
    /// The agent.
    name: AgentName,
}

impl NewSessionArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        control::ask(self.name, ControlAction::NewSession, host, out).await
    }
}
