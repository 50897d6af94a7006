//! `inbox`: the operator's mail, shown without consuming it; `--ack` marks it as dealt with.

use clap::Args;
use hive_wire::{
    MessageId, Timestamp,
    agent::Message,
    client::Client,
    host::{AckInbox, Inbox},
};

use super::{age::age, failure::Failure, json, out::Out, table::Table};

/// Arguments of `inbox`.
#[derive(Debug, Args)]
pub struct InboxArgs {
    /// Mark these messages as dealt with.
    #[arg(long, value_name = "ID", num_args = 1.., allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["after", "limit"])]
    ack: Vec<MessageId>,
    /// Only messages after this one.
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    after: Option<MessageId>,
    /// At most so many, oldest first.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
}

impl InboxArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        if self.ack.is_empty() {
            self.show(host, out).await
        } else {
            self.acknowledge(host, out).await
        }
    }

    async fn acknowledge(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let asked = self.ack.len();
        let acked = host.call(&AckInbox { ids: self.ack }).await?.acked;
        if out.is_json() {
            return out.json(json::Acked { acked });
        }
        out.line(format_args!("{acked} of {asked} marked as dealt with"))
    }

    async fn show(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let (messages, next) = fetch(host, self.after, self.limit).await?;
        if out.is_json() {
            return out.json(json::InboxDocument::new(&messages, next));
        }
        if messages.is_empty() {
            out.note("no mail: agents write to you as `operator`");
            return Ok(());
        }
        out.table(&table(&messages))?;
        out.note("whole text: `hive-c0re receipt ID`; dealt with: `hive-c0re inbox --ack ID…`");
        if let Some(next) = next {
            out.note(format_args!("there is more: go on with --after {next}"));
        }
        Ok(())
    }
}

/// Reads page after page, as many as fit in a line each, until `limit` or the end.
async fn fetch(
    host: &Client,
    mut after: Option<MessageId>,
    limit: usize,
) -> Result<(Vec<Message>, Option<MessageId>), Failure> {
    let mut all: Vec<Message> = Vec::new();
    loop {
        let page = host.call(&Inbox { after }).await?.messages;
        let last = page.last().map(|message| message.id);
        all.extend(page);
        if all.len() > limit {
            all.truncate(limit);
            let next = all.last().map(|message| message.id).or(after);
            return Ok((all, next));
        }
        // A page that brings nothing new is the last one.
        if last.is_none() || last <= after {
            return Ok((all, None));
        }
        after = last;
    }
}

fn table(messages: &[Message]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new(&["ID", "AGE", "FROM", "RE", "BODY"]);
    for message in messages {
        let re = message
            .in_reply_to
            .map_or("-".to_owned(), |id| id.to_string());
        table.row([
            message.id.to_string().into(),
            age(message.sent_at, now).into(),
            message.from.as_str().into(),
            re.into(),
            message.body.as_str().into(),
        ]);
    }
    table
}
