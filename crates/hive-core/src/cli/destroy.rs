//! `destroy NAME`: removes an agent; what it owned stays for a later one of the same name.

use clap::Args;
use hive_wire::{AgentName, client::Client, host::Destroy};

use super::{confirm::confirm, failure::Failure, json, out::Out};

/// Arguments of `destroy`.
#[derive(Debug, Args)]
pub struct DestroyArgs {
    /// Which agent.
    name: AgentName,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl DestroyArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let name = self.name;
        let question = format!("destroy {name}? Its mail, state and credentials stay.");
        confirm(&question, self.yes, out)?;
        let destroyed = host.call(&Destroy { name: name.clone() }).await?;
        let kept_messages = destroyed.kept_messages;
        if out.is_json() {
            return out.json(json::Destroyed {
                name: name.as_str(),
                kept_messages,
            });
        }
        out.line(format_args!(
            "destroyed {name}; {kept_messages} messages stay in its inbox"
        ))
    }
}
