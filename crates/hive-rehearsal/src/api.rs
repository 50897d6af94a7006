//! The shapes of the two APIs: answers, streams, errors, and what they refuse.
//!
//! Each API is a folder of the same functions. Nothing here decides what is said.

mod anthropic;
pub(crate) mod error;
mod openai;

use hyper::{HeaderMap, StatusCode};
use serde_json::Value;

use self::error::ApiError;
use crate::{ask::Api, script::Reply, sse::Event};

/// An answer in one piece.
pub(crate) fn whole(api: Api, reply: &Reply) -> Value {
    match api {
        Api::Anthropic => anthropic::answer::whole(reply),
        Api::OpenAi => openai::answer::whole(reply),
    }
}

/// An answer as a stream.
pub(crate) fn events(api: Api, reply: &Reply) -> Vec<Event> {
    match api {
        Api::Anthropic => anthropic::stream::events(reply),
        Api::OpenAi => openai::stream::events(reply),
    }
}

/// An error with its status.
pub(crate) fn error(api: Api, error: &ApiError, request_id: &str) -> (StatusCode, Value) {
    match api {
        Api::Anthropic => anthropic::error::body(error, request_id),
        Api::OpenAi => openai::error::body(error),
    }
}

/// An error in the middle of a stream.
pub(crate) fn error_event(api: Api, error: &ApiError) -> Event {
    match api {
        Api::Anthropic => anthropic::error::event(error),
        Api::OpenAi => openai::error::event(error),
    }
}

/// What the real API would refuse.
pub(crate) fn check(api: Api, headers: &HeaderMap, body: &Value) -> Result<(), ApiError> {
    match api {
        Api::Anthropic => {
            anthropic::check::credentials(headers)?;
            anthropic::check::request(body)?;
            anthropic::check::max_tokens(body)
        }
        Api::OpenAi => {
            openai::check::credentials(headers)?;
            openai::check::request(body)
        }
    }
}

/// What the real API would refuse to count.
pub(crate) fn check_count(headers: &HeaderMap, body: &Value) -> Result<(), ApiError> {
    anthropic::check::credentials(headers)?;
    anthropic::check::request(body)
}

/// The list of models, in the shape that the caller knows.
pub(crate) fn models(api: Api, names: &[String]) -> Value {
    match api {
        Api::Anthropic => anthropic::models::list(names),
        Api::OpenAi => openai::models::list(names),
    }
}

/// One model, in the shape that the caller knows.
pub(crate) fn model(api: Api, name: &str) -> Value {
    match api {
        Api::Anthropic => anthropic::models::one(name),
        Api::OpenAi => openai::models::one(name),
    }
}
