//! `turns`: the statistics of an agent's turns, newest first, in pages (T12).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{TurnPage, Turns},
};

use super::Host;

/// How many turns a page has unless told otherwise.
const DEFAULT_LIMIT: u32 = 50;
/// How many it has at most.
const MAX_LIMIT: u32 = 200;

pub(crate) async fn run(host: Arc<Host>, command: Turns) -> Result<TurnPage, WireError> {
    let (agent, _) = host.find(command.name).await?;
    let limit = command.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let page = host
        .read(move |readers| readers.turn_rows(&agent.name, command.before, limit))
        .await?;
    let last = page.rows.last().map(|last| last.turn_row_id);
    Ok(TurnPage {
        next: last.filter(|_| page.more),
        turns: page.rows,
    })
}
