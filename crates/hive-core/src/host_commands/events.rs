//! `events`: the event log, as a page or as the next thing that happens.

use std::{sync::Arc, time::Duration};

use hive_wire::{
    WireError,
    agent::MAX_WAIT_SECONDS,
    host::{EventPage, EventPosition, Events},
};
use tokio::time::Instant;

use super::{Host, storage};

/// How many events a page has unless told otherwise.
const DEFAULT_LIMIT: u32 = 100;

pub(super) async fn run(host: Arc<Host>, command: Events) -> Result<EventPage, WireError> {
    let wait = Duration::from_secs(command.wait_seconds.min(MAX_WAIT_SECONDS).into());
    let deadline = Instant::now() + wait;
    let mut after = command.after;
    loop {
        let page = read(&host, after, &command).await?;
        if !page.events.is_empty() || page.gap {
            return Ok(page);
        }
        // Cancel-safe: both only wait.
        let is_news = tokio::select! {
            is_news = host.events.wait_after(page.next, deadline - Instant::now()) => is_news,
            () = host.stop.cancelled() => false,
        };
        if !is_news {
            return Ok(page);
        }
        after = Some(page.next);
    }
}

async fn read(
    host: &Arc<Host>,
    after: Option<EventPosition>,
    command: &Events,
) -> Result<EventPage, WireError> {
    let limit = command.limit.unwrap_or(DEFAULT_LIMIT) as usize;
    let (events, about) = (Arc::clone(&host.events), command.about.clone());
    let read = move || events.read(after, limit, about.as_deref());
    let outcome = host
        .tasks
        .spawn_blocking(read)
        .await
        .map_err(|error| storage(&error))?;
    outcome.map_err(|error| storage(&error))
}
