//! `pause [NAME]`: an agent, or the whole hive, begins no turn until it is resumed (C18).

use clap::Args;
use hive_wire::{
    AgentName,
    client::Client,
    host::{Pause, PauseRow},
};

use super::{failure::Failure, json, out::Out, table::one_line};

/// Arguments of `pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// The agent; the whole hive without one.
    name: Option<AgentName>,
    /// Stop turns that run, too; their messages wait again.
    #[arg(long)]
    now: bool,
    /// Why, for whoever looks.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl PauseArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let command = Pause {
            name: self.name,
            now: self.now,
            reason: self.reason,
        };
        let paused = host.call(&command).await?;
        if out.is_json() {
            return out.json(json::Paused::from(&paused));
        }
        if !paused.changed {
            out.note("it was paused already");
        }
        let who = who(command.name.as_ref());
        out.line(format_args!("{who} begins no turn; mail waits"))?;
        out.note("go on with `hive-c0re resume`");
        Ok(())
    }
}

/// Whom a command is about.
pub(super) fn who(name: Option<&AgentName>) -> &str {
    name.map_or("the hive", AgentName::as_str)
}

/// A pause in one line.
pub(super) fn line(pause: &PauseRow) -> String {
    let who = who(pause.agent.as_ref());
    format!(
        "{who} is paused since {}: {}",
        pause.since,
        one_line(&pause.reason)
    )
}
