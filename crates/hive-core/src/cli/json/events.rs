//! The shapes of `logs` and `tail`.

use hive_wire::{Timestamp, host};
use serde::Serialize;

#[derive(Serialize)]
struct Event<'a> {
    seq: String,
    at: Timestamp,
    about: &'a str,
    kind: &'a str,
    data: &'a serde_json::Value,
}

impl<'a> From<&'a host::EventRow> for Event<'a> {
    fn from(row: &'a host::EventRow) -> Self {
        Self {
            seq: row.seq.to_string(),
            at: row.at,
            about: &row.about,
            kind: &row.kind,
            data: &row.data,
        }
    }
}

/// A place in the event log.
#[derive(Serialize)]
struct Position {
    epoch: String,
    seq: String,
}

impl From<host::EventPosition> for Position {
    fn from(position: host::EventPosition) -> Self {
        Self {
            epoch: position.epoch.to_string(),
            seq: position.seq.to_string(),
        }
    }
}

/// The newest events: `logs`.
#[derive(Serialize)]
pub(in crate::cli) struct EventLog<'a> {
    events: Vec<Event<'a>>,
    next: Position,
}

impl<'a> From<&'a host::EventPage> for EventLog<'a> {
    fn from(page: &'a host::EventPage) -> Self {
        Self {
            events: page.events.iter().map(Event::from).collect(),
            next: page.next.into(),
        }
    }
}

/// One event as it happens: a line of `tail`.
#[derive(Serialize)]
pub(in crate::cli) struct TailedEvent<'a> {
    event: Event<'a>,
}

impl<'a> From<&'a host::EventRow> for TailedEvent<'a> {
    fn from(row: &'a host::EventRow) -> Self {
        Self { event: row.into() }
    }
}

/// Events that are gone before `tail` could show them: a line of `tail`.
#[derive(Serialize)]
pub(in crate::cli) struct Gap {
    gap: GapAfter,
}

#[derive(Serialize)]
struct GapAfter {
    after: Position,
}

impl From<host::EventPosition> for Gap {
    fn from(after: host::EventPosition) -> Self {
        Self {
            gap: GapAfter {
                after: after.into(),
            },
        }
    }
}
