//! Errors in the words of the real API.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    api::error::ApiError,
    scenario::fault::ErrorKind,
    sse::{Data, Event},
};

pub(crate) fn body(error: &ApiError, request_id: &str) -> (StatusCode, Value) {
    let (status, kind, message) = words(error);
    let body = json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": request_id,
    });
    (status, body)
}

pub(crate) fn event(error: &ApiError) -> Event {
    let (_, kind, message) = words(error);
    Event {
        name: Some("error"),
        data: Data::Json(json!({
            "type": "error",
            "error": {"type": kind, "message": message, "details": null},
        })),
        is_content: false,
    }
}

fn words(error: &ApiError) -> (StatusCode, &str, String) {
    let overloaded = StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let (status, kind, message) = match &error.kind {
        ErrorKind::PromptTooLong => (
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "prompt is too long: 215432 tokens > 200000 maximum",
        ),
        ErrorKind::BadRequest => (
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "messages: the request is not valid",
        ),
        ErrorKind::Credit => (
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits.",
        ),
        ErrorKind::Unauthorized => (
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            "invalid x-api-key",
        ),
        ErrorKind::Forbidden => (
            StatusCode::FORBIDDEN,
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        ErrorKind::ModelNotFound => {
            let message = error.message.clone();
            let message = message.unwrap_or_else(|| format!("model: {}", error.model));
            return (StatusCode::NOT_FOUND, "not_found_error", message);
        }
        ErrorKind::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "request_too_large",
            "Request exceeds the maximum size",
        ),
        ErrorKind::RateLimit => (
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute. \
             Please try again later.",
        ),
        ErrorKind::ServerError => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "api_error",
            "Internal server error",
        ),
        ErrorKind::Overloaded => (overloaded, "overloaded_error", "Overloaded"),
        ErrorKind::Other(status, kind) => (*status, kind.as_str(), "Something went wrong"),
    };
    let message = error.message.clone().unwrap_or_else(|| message.to_owned());
    (status, kind, message)
}
