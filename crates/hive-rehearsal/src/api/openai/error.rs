//! Errors in the words of OpenAI.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    api::error::ApiError,
    scenario::fault::ErrorKind,
    sse::{Data, Event},
};

pub(crate) fn body(error: &ApiError) -> (StatusCode, Value) {
    let (status, kind, code, message) = words(error);
    let message = error.message.clone().unwrap_or_else(|| match error.kind {
        ErrorKind::ModelNotFound => format!(
            "The model `{}` does not exist or you do not have access to it.",
            error.model
        ),
        _ => message.to_owned(),
    });
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    (status, json!({"error": error}))
}

pub(crate) fn event(error: &ApiError) -> Event {
    Event {
        name: None,
        data: Data::Json(body(error).1),
        is_content: false,
    }
}

fn words(error: &ApiError) -> (StatusCode, &str, Option<&'static str>, &'static str) {
    const INVALID: &str = "invalid_request_error";
    match &error.kind {
        ErrorKind::PromptTooLong => (
            StatusCode::BAD_REQUEST,
            INVALID,
            Some("context_length_exceeded"),
            "This model's maximum context length is 128000 tokens. However, your messages \
             resulted in 215432 tokens. Please reduce the length of the messages.",
        ),
        ErrorKind::BadRequest => (
            StatusCode::BAD_REQUEST,
            INVALID,
            None,
            "The request is not valid.",
        ),
        ErrorKind::Credit => (
            StatusCode::TOO_MANY_REQUESTS,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        ErrorKind::Unauthorized => (
            StatusCode::UNAUTHORIZED,
            INVALID,
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        ErrorKind::Forbidden => (
            StatusCode::FORBIDDEN,
            INVALID,
            Some("unsupported_country_region_territory"),
            "You are not allowed to use this resource.",
        ),
        ErrorKind::ModelNotFound => (
            StatusCode::NOT_FOUND,
            INVALID,
            Some("model_not_found"),
            "The model does not exist.",
        ),
        ErrorKind::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            INVALID,
            Some("request_too_large"),
            "The request body is too large.",
        ),
        ErrorKind::RateLimit => (
            StatusCode::TOO_MANY_REQUESTS,
            "requests",
            Some("rate_limit_exceeded"),
            "Rate limit reached for requests. Please try again later.",
        ),
        ErrorKind::ServerError => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            None,
            "The server had an error while processing your request. Sorry about that!",
        ),
        ErrorKind::Overloaded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            None,
            "The engine is currently overloaded, please try again later.",
        ),
        ErrorKind::Other(status, kind) => (*status, kind, None, "Something went wrong."),
    }
}
