//! `discard ID`: throws a dead letter away.

use clap::Args;
use hive_wire::{MessageId, client::Client, host::Discard};

use super::{confirm::confirm, failure::Failure, json, out::Out};

/// Arguments of `discard`.
#[derive(Debug, Args)]
pub struct DiscardArgs {
    /// The dead letter.
    id: MessageId,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl DiscardArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let message_id = self.id;
        let question = format!("discard message {message_id}? It will not be delivered.");
        confirm(&question, self.yes, out)?;
        let settled = host.call(&Discard { message_id }).await?;
        if out.is_json() {
            return out.json(json::Settled::new(message_id, &settled));
        }
        let state = json::message_state(settled.state);
        out.line(format_args!("message {message_id} is {state}"))
    }
}
