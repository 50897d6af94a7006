//! From what the script decided to a response on the wire.

use std::time::Duration;

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::Value;

use super::{
    body::{Beat, End, Playback},
    socket::Connection,
};
use crate::{
    api::{self, error::ApiError},
    ask::{Api, Ask},
    ids::Ids,
    scenario::fault::{BreakKind, ErrorKind},
    script::{Breaking, Reply},
    sse::{Data, Event},
};

/// An answer that goes well.
pub(super) fn reply(ask: &Ask, reply: &Reply) -> Response<Playback> {
    let mut response = if ask.is_streamed {
        let events = api::events(ask.api, reply);
        stream(Playback::new(beats(&events, reply), End::Finish))
    } else {
        json(StatusCode::OK, &api::whole(ask.api, reply))
    };
    add(&mut response, &reply.headers);
    response
}

/// An answer that breaks. What is not streamed breaks in the middle of its JSON.
pub(super) fn broken(
    ask: &Ask,
    reply: &Reply,
    breaking: &Breaking,
    connection: Connection,
    request_id: &str,
) -> Response<Playback> {
    let mut response = if ask.is_streamed {
        let events = break_events(api::events(ask.api, reply), ask.api, breaking);
        let end = end(breaking.how, connection);
        stream(Playback::new(beats(&events, reply), end))
    } else if breaking.how == BreakKind::ErrorEvent {
        let (status, body) = api::error(ask.api, &breaking.error, request_id);
        json(status, &body)
    } else {
        let mut text = Bytes::from(api::whole(ask.api, reply).to_string());
        text.truncate(text.len() / 2);
        let beat = Beat {
            wait: Duration::ZERO,
            bytes: text,
        };
        let body = Playback::new([beat], end(breaking.how, connection));
        typed(Response::new(body), "application/json")
    };
    add(&mut response, &reply.headers);
    response
}

fn end(how: BreakKind, connection: Connection) -> End {
    match how {
        BreakKind::Reset => End::Reset(connection),
        BreakKind::Cut => End::Cut,
        BreakKind::Stall => End::Stall,
        BreakKind::Malformed | BreakKind::ErrorEvent => End::Finish,
    }
}

fn break_events(mut events: Vec<Event>, api: Api, breaking: &Breaking) -> Vec<Event> {
    let after_first_piece = || {
        let first = events.iter().position(|event| event.is_content);
        first.map_or(1, |at| at + 1)
    };
    let at = breaking.after_events.unwrap_or_else(after_first_piece);
    let at = at.min(events.len());
    match breaking.how {
        BreakKind::Reset | BreakKind::Cut | BreakKind::Stall => events.truncate(at),
        BreakKind::ErrorEvent => {
            events.truncate(at);
            events.push(api::error_event(api, &breaking.error));
        }
        BreakKind::Malformed => {
            let name = events.first().and_then(|event| event.name);
            let broken = Event {
                name: name.map(|_| "content_block_delta"),
                data: Data::Raw(r#"{"type":"content_block_delta","index":0,"delta":{"type":"tex"#),
                is_content: true,
            };
            events.insert(at, broken);
        }
    }
    events
}

fn beats(events: &[Event], reply: &Reply) -> Vec<Beat> {
    events
        .iter()
        .map(|event| Beat {
            wait: if event.is_content {
                reply.pace.chunk_delay.0
            } else {
                Duration::ZERO
            },
            bytes: event.encode(),
        })
        .collect()
}

/// A response of JSON.
pub(super) fn json(status: StatusCode, body: &Value) -> Response<Playback> {
    let mut response = Response::new(Playback::whole(body.to_string()));
    *response.status_mut() = status;
    typed(response, "application/json")
}

fn stream(body: Playback) -> Response<Playback> {
    let mut response = typed(Response::new(body), "text/event-stream; charset=utf-8");
    let cache = HeaderValue::from_static("no-cache");
    response.headers_mut().insert("cache-control", cache);
    response
}

fn typed(mut response: Response<Playback>, kind: &'static str) -> Response<Playback> {
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Adds headers, over those there are.
pub(super) fn add(response: &mut Response<Playback>, headers: &[(HeaderName, HeaderValue)]) {
    for (name, value) in headers {
        response.headers_mut().insert(name.clone(), value.clone());
    }
}

/// An error in the API's own shape.
pub(super) fn refusal(api: Api, error: &ApiError, number: u64) -> Response<Playback> {
    let (status, body) = api::error(api, error, &request_id(number));
    let mut response = json(status, &body);
    sign(&mut response, api, number);
    response
}

/// An error that no scenario knows of.
pub(super) fn other_refusal(
    api: Api,
    status: StatusCode,
    text: &str,
    number: u64,
) -> Response<Playback> {
    let kind = match status {
        StatusCode::NOT_FOUND => "not_found_error",
        _ => "invalid_request_error",
    };
    let kind = ErrorKind::Other(status, kind.to_owned());
    refusal(api, &ApiError::plain(kind, Some(text.to_owned())), number)
}

/// The id of a request, which is also in its errors.
pub(super) fn request_id(number: u64) -> String {
    Ids::new(0, number).make("req_", 0)
}

/// The headers that every answer of the real APIs has.
pub(super) fn sign(response: &mut Response<Playback>, api: Api, number: u64) {
    let name = match api {
        Api::Anthropic => "request-id",
        Api::OpenAi => "x-request-id",
    };
    if let Ok(id) = HeaderValue::try_from(request_id(number)) {
        response.headers_mut().insert(name, id);
    }
    if api == Api::Anthropic {
        let organization = HeaderValue::from_static("00000000-0000-4000-8000-000000000000");
        response
            .headers_mut()
            .insert("anthropic-organization-id", organization);
    }
}
