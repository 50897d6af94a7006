//! `history`: messages of the past, newest first, in pages.

use std::sync::Arc;

use hive_store::sqlite::HistoryQuery;
use hive_wire::{
    WireError,
    host::{History, HistoryPage, HistoryRow},
    text,
};

use super::Host;

/// How many messages a page has unless told otherwise.
const DEFAULT_LIMIT: u32 = 50;
/// How many bytes of bodies a page has, so that it fits into one line.
const PAGE_BYTES: usize = 768 * 1024;

pub(super) async fn run(host: Arc<Host>, command: History) -> Result<HistoryPage, WireError> {
    let limit = command.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, 200);
    let query = HistoryQuery {
        with: command.with,
        thread: command.thread,
        before: command.before,
        limit: limit + 1,
    };
    let mut messages = host.read(move |readers| readers.history(&query)).await?;
    let fitting = how_many_fit(&messages).min(limit as usize);
    let has_more = messages.len() > fitting;
    messages.truncate(fitting);
    let next = messages
        .last()
        .filter(|_| has_more)
        .map(|last| last.receipt.message_id);
    Ok(HistoryPage { messages, next })
}

/// How many rows fit into one line; at least one.
pub(super) fn how_many_fit(rows: &[HistoryRow]) -> usize {
    let mut bytes = 0;
    let fitting = rows.iter().take_while(|row| {
        bytes += text::encoded_length(&row.body) + 512;
        bytes <= PAGE_BYTES
    });
    fitting.count().max(1)
}
