//! `GET /api/log`: the event log as a file to keep: JSON lines, or a table for a spreadsheet.

use std::{fmt::Write, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use hive_wire::{
    ErrorCode, WireError,
    host::{EventPosition, EventRow},
};
use serde::Deserialize;

use super::{Site, events, output, stats::Asked};

/// The most events in one file.
const MAX_EVENTS: usize = 20_000;
const PAGE: usize = 1_000;

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// `jsonl` unless given.
    format: Option<Format>,
    /// Only events about this agent, or `operator`.
    about: Option<String>,
    /// Only events whose line has these words, in capitals or not.
    contains: Option<String>,
    limit: Option<usize>,
    /// Without what harnesses tell in detail.
    #[serde(default)]
    brief: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Jsonl,
    Csv,
}

pub(super) async fn download(State(site): State<Site>, Asked(wanted): Asked<Wanted>) -> Response {
    let host = Arc::clone(&site.host);
    let format = wanted.format.unwrap_or(Format::Jsonl);
    let work = move || {
        let position = host.events.position();
        let limit = wanted.limit.unwrap_or(MAX_EVENTS).clamp(1, MAX_EVENTS);
        let mut before = EventPosition {
            seq: position.seq + 1,
            ..position
        };
        let words = wanted.contains.unwrap_or_default().to_lowercase();
        let mut found: Vec<EventRow> = Vec::new();
        while found.len() < limit {
            let page = host
                .events
                .read_before(before, PAGE, wanted.about.as_deref())?;
            let Some(first) = page.events.first() else {
                break;
            };
            before.seq = first.seq;
            let is_wanted = |event: &EventRow| {
                let is_told = !wanted.brief || !events::is_detail(event);
                is_told && (words.is_empty() || line(event).to_lowercase().contains(&words))
            };
            found.extend(page.events.into_iter().rev().filter(is_wanted));
            if !page.more {
                break;
            }
        }
        found.truncate(limit);
        found.reverse();
        Ok::<_, hive_store::event_log::EventLogError>(match format {
            Format::Jsonl => found.iter().map(line).collect(),
            Format::Csv => csv(&found),
        })
    };
    let name = match format {
        Format::Jsonl => "attachment; filename=\"hive-events.jsonl\"",
        Format::Csv => "attachment; filename=\"hive-events.csv\"",
    };
    match site.host.tasks.spawn_blocking(work).await {
        Ok(Ok(text)) => {
            let text: String = text;
            // Plain text whatever is in it: a browser shows it as such, and runs nothing.
            let headers = [
                (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
                (header::CONTENT_DISPOSITION, name),
            ];
            (headers, text).into_response()
        }
        Ok(Err(error)) => {
            output::answer::<()>(Err(WireError::new(ErrorCode::Storage, error.to_string())))
        }
        Err(error) => {
            output::answer::<()>(Err(WireError::new(ErrorCode::Storage, error.to_string())))
        }
    }
}

fn line(event: &EventRow) -> String {
    let mut line = serde_json::to_string(event).expect("plain values encode");
    line.push('\n');
    line
}

fn csv(events: &[EventRow]) -> String {
    let mut text = "seq,at,about,kind,data\r\n".to_owned();
    for event in events {
        let data = event.data.to_string();
        let cells =
            [&event.at.to_string(), &event.about, &event.kind, &data].map(|cell| cell_of(cell));
        writeln!(text, "{},{}\r", event.seq, cells.join(",")).expect("a string takes everything");
    }
    text
}

/// A cell that a spreadsheet takes for text: quoted, and never the beginning of a formula.
fn cell_of(text: &str) -> String {
    let quoted = text.replace('"', "\"\"");
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    format!("\"{}{quoted}\"", if is_formula { "'" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, cell) in [
            ("plain", "\"plain\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("+1", "\"'+1\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
            ("a \"b\"\n,c", "\"a \"\"b\"\"\n,c\""),
        ] {
            assert_eq!(cell_of(text), cell, "{text}");
        }
    }
}
