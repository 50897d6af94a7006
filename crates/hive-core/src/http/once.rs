//! `Idempotency-Key`: a `POST` that is sent again, because its answer was lost, is not done again.
//!
//! The answer is kept for ten minutes under the caller's token, the path and the key. A second
//! request with the same key waits for the first and gets its answer; one with another body is
//! refused. What is kept is bounded, and lost with the daemon: messages have their own `key`,
//! which the store keeps. A long answer is not kept: it is a list, and asking again does no harm.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use hive_wire::{ErrorCode, WireError};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::{Site, auth::Token, input::MAX_BYTES, output};

/// The header that names a request.
const HEADER: &str = "idempotency-key";
/// The longest key.
const MAX_KEY: usize = 128;
/// How many answers are kept on one port …
const MAX_KEPT: usize = 512;
/// … how large each may be …
const MAX_ANSWER: usize = 64 * 1024;
/// … and for how long.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// The answers of a port that may be asked for again.
#[derive(Debug, Default)]
pub(super) struct Answers {
    kept: Mutex<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    name: [u8; 32],
    body: [u8; 32],
    since: Instant,
    answer: Arc<OnceCell<Kept>>,
}

/// An answer that can be given again.
#[derive(Debug, Clone)]
struct Kept {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Bytes,
}

impl Answers {
    /// The place of this request's answer; none when the key was used for another body.
    fn place(&self, name: [u8; 32], body: [u8; 32]) -> Option<Arc<OnceCell<Kept>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| entry.since.elapsed() < KEPT_FOR);
        if let Some(entry) = kept.iter().find(|entry| entry.name == name) {
            return (entry.body == body).then(|| Arc::clone(&entry.answer));
        }
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        let answer = Arc::new(OnceCell::new());
        kept.push_back(Entry {
            name,
            body,
            since: Instant::now(),
            answer: Arc::clone(&answer),
        });
        Some(answer)
    }

    /// Forgets a request that came to nothing, so that it may be tried again.
    fn forget(&self, name: [u8; 32]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| entry.name != name);
    }
}

/// Does a request that has a key once.
pub(super) async fn do_once(State(site): State<Site>, request: Request, next: Next) -> Response {
    let key = request.headers().get(HEADER).cloned();
    let (Some(key), Method::POST) = (key, request.method().clone()) else {
        return next.run(request).await;
    };
    if key.is_empty() || key.len() > MAX_KEY {
        let problem = format!("an idempotency key has 1 to {MAX_KEY} characters");
        return output::answer::<()>(Err(WireError::new(ErrorCode::BadRequest, problem)));
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BYTES).await else {
        let error = WireError::new(ErrorCode::BadRequest, "the body is cut short or too long");
        return output::error_with(StatusCode::PAYLOAD_TOO_LARGE, &error);
    };
    let token = parts
        .extensions
        .get::<Token>()
        .map_or("", |token| token.0.as_str());
    let name = hash(&[
        token.as_bytes(),
        parts.uri.path().as_bytes(),
        key.as_bytes(),
    ]);
    let Some(place) = site.answers.place(name, hash(&[&body])) else {
        let error = WireError::new(ErrorCode::Conflict, "this key was used for another request")
            .hint("use a new key for each action");
        return output::error_with(StatusCode::UNPROCESSABLE_ENTITY, &error);
    };
    let is_first = !place.initialized();
    let kept = place
        .get_or_init(|| async {
            let request = Request::from_parts(parts, Body::from(body));
            keep(next.run(request).await).await
        })
        .await
        .clone();
    // A refusal for want of room or time says nothing about the request itself.
    let is_passing = kept.status.is_server_error() || kept.status == StatusCode::TOO_MANY_REQUESTS;
    if is_passing || kept.bytes.len() > MAX_ANSWER {
        site.answers.forget(name);
    }
    let mut response = (kept.status, kept.headers, kept.bytes).into_response();
    if !is_first {
        let again = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotency-replayed", again);
    }
    response
}

async fn keep(response: Response) -> Kept {
    let (parts, body) = response.into_parts();
    // Answers are bounded by those who make them.
    let (status, bytes) = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => (parts.status, bytes),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
    };
    let mut headers = parts.headers;
    headers.remove(header::CONTENT_LENGTH);
    Kept {
        status,
        headers,
        bytes,
    }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
