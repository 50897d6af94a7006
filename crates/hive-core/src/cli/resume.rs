//! `resume [NAME]`: an agent, or the whole hive, begins turns again (C18).

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Resume};

use super::{
    failure::Failure,
    json,
    out::Out,
    pause::{line, who},
};

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The agent; the hive's own pause without one.
    name: Option<AgentName>,
}

impl ResumeArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let command = Resume { name: self.name };
        let paused = host.call(&command).await?;
        if out.is_json() {
            return out.json(json::Paused::from(&paused));
        }
        let who = who(command.name.as_ref());
        match paused.changed {
            true => out.line(format_args!("{who} goes on"))?,
            false => out.note(format!("{who} was not paused")),
        }
        for pause in &paused.pauses {
            out.note(format!("still: {}", line(pause)));
        }
        Ok(())
    }
}
