//! `GET past`: an agent's events page by page, backwards, for whoever scrolls up.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use hive_wire::{
    ErrorCode, WireError,
    host::{EventPosition, EventRow},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Site, events, input::Target, output, stats::Asked};

/// How many events a page has unless told otherwise, and at most.
const PAGE: usize = 300;
const MAX_PAGE: usize = 1_000;

#[derive(Deserialize)]
pub(super) struct Page {
    /// Only events before this one: the `before` of the page after.
    before: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Past {
    /// Events after this are news to whoever holds this answer.
    position: String,
    /// Oldest first.
    events: Vec<EventRow>,
    /// Where the page before this one ends, when there is one.
    before: Option<String>,
}

pub(super) async fn past(
    State(site): State<Site>,
    Target(name): Target,
    Asked(asked): Asked<Page>,
) -> Response {
    if let Err(error) = site.host.find(name.clone()).await {
        return output::answer::<()>(Err(error));
    }
    let position = site.host.events.position();
    let before = asked.before.as_deref().map(events::parse_id);
    let end = match before {
        None => EventPosition {
            seq: position.seq + 1,
            ..position
        },
        Some(Some(end)) => end,
        Some(None) => {
            let error = WireError::new(ErrorCode::BadRequest, "`before` is no id of an event");
            return output::answer::<()>(Err(error));
        }
    };
    let limit = asked.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let log = Arc::clone(&site.host.events);
    let read = move || log.read_before(end, limit, Some(name.as_str()));
    output::answer(match site.host.tasks.spawn_blocking(read).await {
        Ok(Ok(earlier)) => Ok(Past {
            position: events::id(position),
            before: earlier
                .events
                .first()
                .filter(|_| earlier.more)
                .map(|event| {
                    events::id(EventPosition {
                        seq: event.seq,
                        ..position
                    })
                }),
            events: earlier.events,
        }),
        Ok(Err(error)) => Err(WireError::new(ErrorCode::Storage, error.to_string())),
        Err(error) => Err(WireError::new(ErrorCode::Storage, error.to_string())),
    })
}
