//! `model NAME MODEL`: chooses the model of an agent's next turns (T17).

use clap::Args;
use hive_wire::{AgentName, client::Client, control::ControlAction};

use super::{control, failure::Failure, out::Out};

/// Arguments of `model`.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The agent.
    name: AgentName,
    /// The model, such as `haiku`.
    model: String,
}

impl ModelArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let action = ControlAction::Model { name: self.model };
        control::ask(self.name, action, host, out).await
    }
}
