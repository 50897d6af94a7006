//! Answers in the wire's own shape: `{"ok":true,…}` or `{"ok":false,"error":{…}}`. An error is a
//! problem document (RFC 9457) besides, for tools that know those.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hive_wire::{ErrorCode, WireError, command::encode_reply};
use serde::Serialize;

/// An error in both shapes.
#[derive(Serialize)]
struct Problem<'a> {
    ok: bool,
    error: &'a WireError,
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

/// What comes of an action, as an answer.
pub(super) fn answer<T: Serialize>(outcome: Result<T, WireError>) -> Response {
    match outcome {
        Ok(reply) => json(StatusCode::OK, encode_reply(Ok(&reply), None)),
        Err(error) => error_with(status_of(error.code), &error),
    }
}

/// An error with a status of its own.
pub(super) fn error_with(status: StatusCode, error: &WireError) -> Response {
    let problem = Problem {
        ok: false,
        error,
        kind: format!("urn:hyperhive:error:{}", error.code),
        title: &error.message,
        status: status.as_u16(),
        detail: &error.hint,
    };
    let body = serde_json::to_vec(&problem).expect("texts and numbers encode");
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (status, kind, body).into_response()
}

/// What is refused before it gets to an action.
pub(super) struct Refused(pub(super) StatusCode, pub(super) WireError);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        error_with(self.0, &self.1)
    }
}

impl From<WireError> for Refused {
    fn from(error: WireError) -> Self {
        Self(status_of(error.code), error)
    }
}

pub(super) async fn no_such_page() -> Response {
    let error = WireError::new(ErrorCode::NotFound, "there is nothing here")
        .hint("GET /api/openapi.json lists what there is");
    error_with(StatusCode::NOT_FOUND, &error)
}

pub(super) async fn no_such_method() -> Response {
    let error = WireError::new(ErrorCode::BadRequest, "this cannot be done here")
        .hint("GET /api/openapi.json lists the methods of each path");
    error_with(StatusCode::METHOD_NOT_ALLOWED, &error)
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::BadRequest => StatusCode::BAD_REQUEST,
        ErrorCode::LineTooLong => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::Slow => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::UnknownCommand | ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Denied => StatusCode::FORBIDDEN,
        ErrorCode::Conflict
        | ErrorCode::NoOpenTurn
        | ErrorCode::TurnEnded
        | ErrorCode::Replaced
        | ErrorCode::Superseded => StatusCode::CONFLICT,
        ErrorCode::LimitReached => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::Storage | ErrorCode::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_an_error_to_http_too() {
        for code in ErrorCode::ALL {
            let status = status_of(*code);
            assert!(
                status.is_client_error() || status.is_server_error(),
                "{code}"
            );
        }
    }
}
