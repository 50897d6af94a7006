//! `history`: messages of the past, newest first, in pages.

use std::sync::Arc;

use hive_store::sqlite::HistoryQuery;
use hive_wire::{
    WireError,
    host::{History, HistoryPage},
};

use super::Host;

/// How many messages a page has unless told otherwise.
const DEFAULT_LIMIT: u32 = 50;
/// How many it has at most.
const MAX_LIMIT: u32 = 200;

pub(super) async fn run(host: Arc<Host>, command: History) -> Result<HistoryPage, WireError> {
    let query = HistoryQuery {
        with: command.with,
        thread: command.thread,
        before: command.before,
        limit: command.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
    };
    let page = host.read(move |readers| readers.history(&query)).await?;
    let last = page.rows.last().map(|last| last.receipt.message_id);
    Ok(HistoryPage {
        next: last.filter(|_| page.more),
        messages: page.rows,
    })
}
