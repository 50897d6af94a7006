//! What requests bring: a JSON body of bounded size, and the agent that they are about.

use std::time::Duration;

use axum::{
    body::{Body as RawBody, Bytes, to_bytes},
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use hive_wire::{AgentName, ErrorCode, WireError, text};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{Site, output::Refused};
use crate::access::Audience;

/// The largest body of a request.
pub(super) const MAX_BYTES: usize = 512 * 1024;
/// How long it may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body of a request as JSON. A form, which any site can send, is refused.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Site> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &Site) -> Result<Self, Refused> {
        if !is_json(request.headers()) {
            let error = WireError::new(ErrorCode::BadRequest, "the body must be JSON")
                .hint("send `Content-Type: application/json` and a JSON object");
            return Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
        }
        let bytes = whole(request.into_body()).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            let why = text::shorten_middle(&error.to_string(), 300);
            WireError::new(
                ErrorCode::BadRequest,
                format!("cannot read the body: {why}"),
            )
            .hint("GET /api/openapi.json describes it")
            .into()
        })
    }
}

/// The whole body, if it is not too long and does not dawdle.
pub(super) async fn whole(body: RawBody) -> Result<Bytes, Refused> {
    match timeout(PATIENCE, to_bytes(body, MAX_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let problem = format!("the body is cut short or longer than {MAX_BYTES} bytes");
            let error = WireError::new(ErrorCode::BadRequest, problem);
            Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, error))
        }
        Err(_) => Err(WireError::new(ErrorCode::Slow, "the body is too slow").into()),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The agent that a request is about: the one whose port it came to, else the one in the path.
pub(super) struct Target(pub(super) AgentName);

impl FromRequestParts<Site> for Target {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Refused> {
        if let Audience::Agent(name) = &*site.audience {
            return Ok(Self(name.clone()));
        }
        let params = RawPathParams::from_request_parts(parts, site).await;
        let params = params.map_err(|_| no_such_agent(""))?;
        let given = params.iter().find(|(key, _)| *key == "name");
        let given = given.map_or("", |(_, value)| value);
        given.parse().map(Self).map_err(|_| no_such_agent(given))
    }
}

fn no_such_agent(name: &str) -> Refused {
    let name = text::shorten(name, 40);
    WireError::new(ErrorCode::NotFound, format!("there is no agent `{name}`")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_counts_as_json() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/jsonp", false),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
            assert_eq!(is_json(&headers), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
