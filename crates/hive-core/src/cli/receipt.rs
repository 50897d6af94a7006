//! `receipt ID`: what became of a message, with its whole text for people.

use clap::Args;
use hive_wire::{
    MessageId,
    agent::Receipt,
    client::Client,
    host::{History, LookUpReceipt},
    text::printable,
};

use super::{failure::Failure, json, out::Out, table::one_line};

/// Arguments of `receipt`.
#[derive(Debug, Args)]
pub struct ReceiptArgs {
    /// The message.
    #[arg(allow_negative_numbers = true)]
    id: MessageId,
}

impl ReceiptArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let message_id = self.id;
        let receipt = host.call(&LookUpReceipt { message_id }).await?;
        if out.is_json() {
            return out.json(json::Receipt::from(&receipt));
        }
        out.fields(&fields(&receipt))?;
        if let Some(body) = body(host, message_id).await? {
            out.line(format_args!("\n{}", printable(&body)))?;
        }
        Ok(())
    }
}

/// The text of one message: the newest of its thread up to itself.
async fn body(host: &Client, id: MessageId) -> Result<Option<String>, Failure> {
    let history = History {
        thread: Some(id),
        before: Some(MessageId(id.0.saturating_add(1))),
        limit: Some(1),
        ..History::default()
    };
    let page = host.call(&history).await?;
    let mut rows = page.messages.into_iter();
    Ok(rows
        .find(|row| row.receipt.message_id == id)
        .map(|row| row.body))
}

fn fields(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("message", receipt.message_id.to_string()),
        ("from", receipt.from.to_string()),
        ("to", one_line(&receipt.to)),
        ("state", json::message_state(receipt.state).to_owned()),
        ("deliveries", receipt.deliveries.to_string()),
    ];
    if let Some(turn) = &receipt.turn {
        fields.push(("turn", one_line(turn.as_str())));
    }
    fields.push(("sent at", receipt.sent_at.to_string()));
    if let Some(acked_at) = receipt.acked_at {
        fields.push(("acked at", acked_at.to_string()));
    }
    fields
}
