//! `destroy NAME`: removes an agent; what it owned stays for a later one of the same name.

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Destroy};

use super::{confirm::confirm, failure::Failure, json, lifecycle, out::Out};

/// Arguments of `destroy`.
#[derive(Debug, Args)]
pub struct DestroyArgs {
    /// Which agent.
    name: AgentName,
    /// Also remove its files: state, notes, sessions and credentials. Its mail stays.
    #[arg(long)]
    purge: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl DestroyArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let name = self.name;
        let question = if self.purge {
            format!("destroy {name} and remove all its files? They cannot be brought back.")
        } else {
            format!("destroy {name}? Its mail, state and credentials stay.")
        };
        confirm(&question, self.yes, out)?;
        let destroy = Destroy {
            name: name.clone(),
            purge: self.purge,
        };
        let destroyed = lifecycle::ask(host, &destroy).await?;
        let kept_messages = destroyed.kept_messages;
        if out.is_json() {
            return out.json(json::Destroyed {
                name: name.as_str(),
                kept_messages,
                purged: destroyed.purged,
            });
        }
        let files = if destroyed.purged {
            "its files are gone"
        } else {
            "its files stay"
        };
        out.line(format_args!(
            "destroyed {name}; {kept_messages} messages stay in its inbox, {files}"
        ))
    }
}
