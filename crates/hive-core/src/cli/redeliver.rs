//! `redeliver ID`: puts a dead letter back into its inbox.

use clap::Args;
use hive_wire::{MessageId, client::Client, host::Redeliver};

use super::{failure::Failure, json, out::Out};

/// Arguments of `redeliver`.
#[derive(Debug, Args)]
pub struct RedeliverArgs {
    /// The dead letter.
    id: MessageId,
}

impl RedeliverArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let message_id = self.id;
        let settled = host.call(&Redeliver { message_id }).await?;
        if out.is_json() {
            return out.json(json::Settled::new(message_id, &settled));
        }
        let state = json::message_state(settled.state);
        out.line(format_args!("message {message_id} is {state}"))
    }
}
