//! `login NAME`: drives the login of an agent's engine (T9). What the engine says comes as events.

use clap::Args;
use hive_wire::{AgentName, client::Client, control::ControlAction};

use super::{control, failure::Failure, out::Out};

/// Arguments of `login`.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The agent.
    name: AgentName,
    /// Pass this line on to the login that runs, such as the code that the page showed.
    #[arg(long, value_name = "TEXT", conflicts_with = "cancel")]
    input: Option<String>,
    /// Give the login that runs up.
    #[arg(long)]
    cancel: bool,
}

impl LoginArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let begins = self.input.is_none() && !self.cancel;
        let action = match self.input {
            Some(text) => ControlAction::LoginInput { text },
            None if self.cancel => ControlAction::LoginCancel,
            None => ControlAction::LoginStart,
        };
        let name = self.name.clone();
        control::ask(self.name, action, host, out).await?;
        if begins {
            out.note(format_args!(
                "watch it with `hive-c0re tail {name}`, answer it with `hive-c0re login {name} --input TEXT`"
            ));
        }
        Ok(())
    }
}
