//! `GET /api/events`: the event log as a stream of server-sent events.
//!
//! A client is sent one page of the log at a time, and the next one only when it has taken that:
//! whoever reads slowly costs one page of memory, reads on from where it is, and is told of a gap
//! when the log has moved on. Whoever does not read at all is dropped by the connection's patience.
//! Ids are `EPOCH-SEQ`; `Last-Event-ID` goes on after one. What agents say stands in JSON only.

use std::{convert::Infallible, fmt::Write, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use hive_wire::{
    ErrorCode, WireError,
    host::{EventPage, EventPosition, EventRow},
};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Site,
    auth::Token,
    input::Target,
    output::{self, Refused},
    shared::{Key, Ready},
    stats::Asked,
};

/// A quiet stream says that it lives this often.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many events a page has.
const PAGE: usize = 100;
/// The most events of the past that a new client may ask for.
const MAX_RECENT: usize = 500;

#[derive(Deserialize)]
pub(super) struct Filter {
    /// Where to go on; `Last-Event-ID` counts for more.
    after: Option<String>,
    /// How many events of the past come first, without a place to go on from.
    recent: Option<usize>,
    /// Only events about this agent, or `operator`.
    about: Option<String>,
    /// Of what harnesses tell in detail, only what is about this agent; `-` for nobody.
    watch: Option<String>,
}

/// What harnesses tell in detail: the bulk of the log, and news to whoever watches the agent alone.
const DETAILS: [&str; 3] = ["stream", "note", "login"];

/// Whether it is one of the things that harnesses tell in detail.
pub(super) fn is_detail(event: &EventRow) -> bool {
    DETAILS.contains(&event.kind.as_str())
}

/// Events about one agent.
pub(super) async fn of_agent(
    State(site): State<Site>,
    Target(name): Target,
    Extension(token): Extension<Token>,
    headers: HeaderMap,
    Asked(filter): Asked<Filter>,
) -> Response {
    // The agent must be there; its past may be looked at later, by those who have the token.
    if let Err(error) = site.host.find(name.clone()).await {
        return output::answer::<()>(Err(error));
    }
    open(site, token, &headers, filter, Some(name.to_string()))
}

/// Events about everybody.
pub(super) async fn of_hive(
    State(site): State<Site>,
    Extension(token): Extension<Token>,
    headers: HeaderMap,
    Asked(filter): Asked<Filter>,
) -> Response {
    let about = filter.about.clone();
    open(site, token, &headers, filter, about)
}

/// A position as the id of an event.
pub(super) fn id(position: EventPosition) -> String {
    format!("{}-{}", position.epoch, position.seq)
}

/// What an id of an event says.
pub(super) fn parse_id(text: &str) -> Option<EventPosition> {
    let (epoch, seq) = text.trim().split_once('-')?;
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
    Some(EventPosition {
        epoch: number(epoch)?,
        seq: number(seq)?,
    })
}

fn open(
    site: Site,
    token: Token,
    headers: &HeaderMap,
    filter: Filter,
    about: Option<String>,
) -> Response {
    let Ok(seat) = Arc::clone(&site.streams).try_acquire_owned() else {
        let error = WireError::new(
            ErrorCode::LimitReached,
            "too many event streams are open here",
        )
        .hint("close a page");
        return Refused::from(error).into_response();
    };
    let last = headers
        .get("last-event-id")
        .map(|id| id.to_str().unwrap_or_default());
    let asked = last.or(filter.after.as_deref());
    // An id that cannot be read is one of another log: the reader is told of a gap.
    let unknown = EventPosition { epoch: 0, seq: 0 };
    let after = asked.map(|id| parse_id(id).unwrap_or(unknown));
    let recent = filter.recent.unwrap_or(PAGE).min(MAX_RECENT);
    let feed = Feed {
        after: after.or_else(|| (recent == 0).then(|| site.host.events.position())),
        first: recent.max(1),
        watch: filter.watch,
        site,
        token,
        about,
        greeted: false,
        _seat: seat,
    };
    let body = Body::from_stream(stream::unfold(feed, Feed::next));
    let kind = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (kind, body).into_response()
}

/// One client's way through the log.
struct Feed {
    site: Site,
    token: Token,
    about: Option<String>,
    watch: Option<String>,
    after: Option<EventPosition>,
    /// How many events the first page has, when it has no place to go on from.
    first: usize,
    greeted: bool,
    _seat: OwnedSemaphorePermit,
}

impl Feed {
    /// The next piece of the stream; none at its end.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if !self.greeted {
            self.greeted = true;
            return Some((Ok(Bytes::from_static(b"retry: 2000\n\n")), self));
        }
        loop {
            // A session that was ended sees no more.
            if !self
                .site
                .host
                .access
                .admits(&self.site.audience, &self.token.0)
            {
                return None;
            }
            let key = self.after.map(|after| Key {
                after,
                about: self.about.clone(),
                watch: self.watch.clone(),
            });
            if let Some(page) = key.as_ref().and_then(|key| self.site.shared.get(key)) {
                self.after = Some(page.next);
                return Some((Ok(page.bytes), self));
            }
            let mut page = self.read().await?;
            self.after = Some(page.next);
            let had_events = !page.events.is_empty();
            if let Some(watched) = &self.watch {
                let is_news = |event: &EventRow| event.about == *watched || !is_detail(event);
                page.events.retain(is_news);
            }
            if had_events || page.gap {
                let ready = Ready {
                    next: page.next,
                    bytes: write_page(&page).into(),
                };
                if let Some(key) = key {
                    self.site.shared.keep(key, &ready);
                }
                return Some((Ok(ready.bytes), self));
            }
            // Cancel-safe: both only wait.
            let is_news = tokio::select! {
                is_news = self.site.host.events.wait_after(page.next, HEARTBEAT) => is_news,
                () = self.site.host.stop.cancelled() => return None,
            };
            if !is_news {
                return Some((Ok(Bytes::from_static(b":\n\n")), self));
            }
        }
    }

    async fn read(&self) -> Option<EventPage> {
        let (events, about) = (Arc::clone(&self.site.host.events), self.about.clone());
        let after = self.after;
        let limit = if after.is_some() { PAGE } else { self.first };
        let read = move || events.read(after, limit, about.as_deref());
        match self.site.host.tasks.spawn_blocking(read).await {
            Ok(Ok(page)) => Some(page),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read the event log");
                None
            }
            Err(_) => None,
        }
    }
}

fn write_page(page: &EventPage) -> String {
    let epoch = page.next.epoch;
    let mut text = String::new();
    if page.gap {
        text.push_str("event: gap\ndata: {}\n\n");
    }
    for row in &page.events {
        write_event(&mut text, epoch, row);
    }
    // Whoever follows one agent moves on past the events of others.
    if page
        .events
        .last()
        .is_none_or(|last| last.seq < page.next.seq)
    {
        writeln!(text, "id: {}\n", id(page.next)).expect("a string takes everything");
    }
    text
}

fn write_event(text: &mut String, epoch: i64, row: &EventRow) {
    let position = EventPosition {
        epoch,
        seq: row.seq,
    };
    let data = serde_json::to_string(row).expect("plain values encode");
    // JSON has no raw line breaks, so that nothing an agent says can end the line.
    writeln!(text, "id: {}\ndata: {data}\n", id(position)).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use hive_wire::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_read_strictly() {
        let position = EventPosition { epoch: 7, seq: 42 };
        assert_eq!(parse_id(&id(position)), Some(position));
        for bad in [
            "",
            "7",
            "7-",
            "-42",
            "7-x",
            "7--1",
            "7-42-1",
            "99999999999999999999-1",
        ] {
            assert_eq!(parse_id(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_agents_words_cannot_leave_their_line() {
        let row = EventRow {
            seq: 3,
            at: Timestamp::from_millis(0),
            about: "ada".into(),
            kind: "note".into(),
            data: json!({"text": "a\n\ndata: forged\r\nid: 9-9\u{2028}"}),
        };
        let page = EventPage {
            events: vec![row],
            next: EventPosition { epoch: 7, seq: 3 },
            gap: true,
        };
        let text = write_page(&page);
        let lines: Vec<&str> = text.split(['\n', '\r']).collect();
        assert_eq!(lines[..4], ["event: gap", "data: {}", "", "id: 7-3"]);
        assert!(lines[4].starts_with("data: {\"seq\":3,"), "{text}");
        assert_eq!(lines[5..], ["", ""], "{text}");
    }
}
