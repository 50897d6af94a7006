//! `history`: messages of the past, newest first; a thread is shown whole, oldest first.

use anstyle::Style;
use clap::Args;
use hive_wire::{
    MessageId, Timestamp,
    agent::MessageState,
    client::Client,
    host::{History, HistoryRow},
    text::printable,
};

use super::{
    age::age,
    failure::Failure,
    json,
    out::{Out, style},
    table::{Cell, Table, one_line},
};

/// The most messages that one call asks for.
const PAGE: usize = 500;

/// Arguments of `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Only messages to or from this agent (or `operator`).
    #[arg(long, value_name = "NAME")]
    with: Option<String>,
    /// Only the thread that this message belongs to, with whole bodies.
    #[arg(long, value_name = "ID")]
    thread: Option<MessageId>,
    /// Only messages before this one.
    #[arg(long, value_name = "ID")]
    before: Option<MessageId>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl HistoryArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let (rows, next) = self.fetch(host).await?;
        if out.is_json() {
            return out.json(json::MessageList::page(&rows, next));
        }
        if rows.is_empty() {
            out.note("no such messages: write one with `hive-c0re send TO BODY`");
            return Ok(());
        }
        if self.thread.is_some() {
            show_whole(&rows, out)?;
        } else {
            out.table(&table(&rows))?;
        }
        if let Some(next) = next {
            out.note(format_args!("there is more: go on with --before {next}"));
        }
        Ok(())
    }

    /// Reads page after page until `limit` or the end.
    async fn fetch(&self, host: &Client) -> Result<(Vec<HistoryRow>, Option<MessageId>), Failure> {
        let mut rows = Vec::new();
        let mut before = self.before;
        loop {
            let missing = self.limit.saturating_sub(rows.len()).min(PAGE);
            let page = host
                .call(&History {
                    with: self.with.clone(),
                    thread: self.thread,
                    before,
                    limit: u32::try_from(missing).ok(),
                })
                .await?;
            rows.extend(page.messages);
            // A page that leads no further back is the last one.
            let stuck = before.is_some() && page.next >= before;
            if page.next.is_none() || stuck || rows.len() >= self.limit {
                return Ok((rows, page.next));
            }
            before = page.next;
        }
    }
}

/// Messages as a table, their bodies shortened.
pub(super) fn table(rows: &[HistoryRow]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new(&["ID", "AGE", "FROM", "TO", "STATE", "BODY"]);
    for row in rows {
        let receipt = &row.receipt;
        let state = receipt.state;
        table.row([
            receipt.message_id.to_string().into(),
            age(receipt.sent_at, now).into(),
            receipt.from.as_str().into(),
            receipt.to.as_str().into(),
            Cell::styled(json::message_state(state), state_style(state)),
            row.body.as_str().into(),
        ]);
    }
    table
}

/// A conversation as one reads it: oldest first, every word.
fn show_whole(rows: &[HistoryRow], out: &mut Out) -> Result<(), Failure> {
    for (place, row) in rows.iter().rev().enumerate() {
        if place > 0 {
            out.line("")?;
        }
        let receipt = &row.receipt;
        let id = out.paint(style::HEAD, &format!("#{}", receipt.message_id));
        let state = json::message_state(receipt.state);
        let state = out.paint(state_style(receipt.state), state);
        let (from, to) = (&receipt.from, one_line(&receipt.to));
        out.line(format_args!(
            "{id} {from} → {to}  {}  {state}",
            receipt.sent_at
        ))?;
        out.line(printable(&row.body))?;
    }
    Ok(())
}

fn state_style(state: MessageState) -> Style {
    match state {
        MessageState::Stored => style::WARN,
        MessageState::Leased => style::BUSY,
        MessageState::Acked => style::GOOD,
        MessageState::Dead => style::BAD,
        MessageState::Discarded => style::FAINT,
    }
}
