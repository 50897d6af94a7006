//! One call of a model's API: checked, signed, passed on and counted.

use std::sync::{Arc, atomic::AtomicU64};

use hive_wire::Timestamp;
use http_body_util::{BodyExt, Limited};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    Body,
    body::{Cut, Heard, Sent, text},
    door::Door,
    head, limits, routes,
    tally::Tally,
    upstream::{Login, Upstream},
};

/// How much of a refusal is passed on.
const MAX_REFUSAL: usize = 256 * 1024;

/// Answers a call of an engine.
pub(super) async fn call(door: &Arc<Door>, request: Request<Incoming>) -> Response<Body> {
    match passed_on(door, request).await {
        Ok(answer) => answer,
        Err(problem) => problem.answer(),
    }
}

async fn passed_on(
    door: &Arc<Door>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Problem> {
    let shared = door.shared();
    let (mut head, body) = request.into_parts();
    let asked = head.uri.path();
    let Some((upstream, path)) = shared.upstreams.of(asked) else {
        return Err(Problem::not_open(head.method.as_str(), asked));
    };
    head::for_service(&mut head.headers);
    let login = upstream.authorise(&mut head.headers);
    if !routes::is_open(upstream.api, login, &head.method, path) {
        return Err(Problem::not_open(head.method.as_str(), path));
    }
    shared
        .books
        .may_call(door.agent())
        .map_err(Problem::refused)?;
    let longest = shared.limits.request;
    if body.size_hint().lower() > longest {
        return Err(Problem::too_large(longest));
    }
    let _seat = door.calls().try_acquire().map_err(|_| Problem::busy())?;
    let target = match head.uri.query() {
        Some(query) => upstream.endpoint.url(&format!("{path}?{query}")),
        None => upstream.endpoint.url(path),
    };
    let body = Sent::new(body, longest, shared.patience.request);
    let asked = routes::is_inference(upstream.api, path).then(|| body.passed());
    let mut outgoing = Request::builder().method(head.method).uri(target);
    if let Some(headers) = outgoing.headers_mut() {
        *headers = head.headers;
    }
    let outgoing = outgoing
        .body(body)
        .map_err(|error| Problem::unreachable(upstream, &error))?;
    let answer = timeout(shared.patience.answer, upstream.client.request(outgoing)).await;
    let answer = answer
        .map_err(|_| Problem::slow())?
        .map_err(|error| Problem::unreachable(upstream, &error))?;
    let call = Call {
        door,
        upstream,
        login,
        asked,
    };
    Ok(call.passed_back(answer).await)
}

/// A call that was made.
struct Call<'c> {
    door: &'c Arc<Door>,
    upstream: &'c Upstream,
    login: Login,
    /// How long the question was, where the answer costs something.
    asked: Option<Arc<AtomicU64>>,
}

impl Call<'_> {
    /// Passes an answer on to the engine, and tells what it means.
    async fn passed_back(self, answer: Response<Incoming>) -> Response<Body> {
        let shared = self.door.shared();
        let (mut head, body) = answer.into_parts();
        head::strip(&mut head.headers);
        if self.login == Login::Host
            && let Some(until) = limits::refused_until(head.status, &head.headers, Timestamp::now())
        {
            shared.books.limited(self.door.agent(), until);
        }
        if head.status.is_client_error() || head.status.is_server_error() {
            let told = self.refusal(&mut head.headers, body).await;
            return Response::from_parts(head, text(told));
        }
        let teller = Arc::clone(self.door);
        let tally = Tally::new(&head.headers, self.asked, move |spent| {
            teller.shared().books.spent(teller.agent(), spent);
        });
        let body = Heard::new(body, tally, shared.patience.silence);
        Response::from_parts(head, body.boxed_unsync())
    }

    /// What a service says when it refuses, without the key that it may quote.
    async fn refusal(&self, headers: &mut HeaderMap, body: Incoming) -> String {
        headers.remove(CONTENT_LENGTH);
        let quoting: Vec<_> = headers
            .iter()
            .filter(|(_, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                self.upstream.mask(&value) != value
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in quoting {
            headers.remove(name);
        }
        let patience = self.door.shared().patience.request;
        let whole = timeout(patience, Limited::new(body, MAX_REFUSAL).collect()).await;
        match whole {
            Ok(Ok(body)) => self
                .upstream
                .mask(&String::from_utf8_lossy(&body.to_bytes())),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a refusal of the model's service did not come to its end");
                String::new()
            }
            Err(_) => {
                tracing::debug!("a refusal of the model's service takes too long");
                String::new()
            }
        }
    }
}

/// Why a call was not made, as the engine is told: in the API's own shape, and with a status that
/// has it do the right thing.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    kind: &'static str,
    message: String,
}

impl Problem {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
        }
    }

    fn not_open(method: &str, path: &str) -> Self {
        let message = format!("the hive's gateway does not pass on {method} {path}");
        Self::new(StatusCode::NOT_FOUND, "not_found_error", message)
    }

    /// What the bookkeeper refuses may be asked again later: the engine's turn is put off.
    fn refused(why: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded_error", why)
    }

    fn too_large(longest: u64) -> Self {
        let message = format!("a request is at most {longest} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    }

    fn busy() -> Self {
        let message = "too many calls of this agent are under way";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded_error", message)
    }

    fn slow() -> Self {
        let message = "the model's service gave no answer in time";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout_error", message)
    }

    fn unreachable(upstream: &Upstream, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut cause = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        if let Some(Cut::TooLong(longest)) = cause.downcast_ref() {
            return Self::too_large(*longest);
        }
        let place = upstream.endpoint.authority();
        let cause = upstream.mask(&cause.to_string());
        tracing::warn!(%place, cause, "the model's service cannot be reached");
        let message = format!("the hive cannot reach {place}: {cause}");
        Self::new(StatusCode::BAD_GATEWAY, "api_error", message)
    }

    fn answer(self) -> Response<Body> {
        let told = json!({
            "type": "error",
            "error": {"type": self.kind, "message": self.message},
        });
        let mut answer = Response::new(text(told.to_string()));
        *answer.status_mut() = self.status;
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(CONTENT_TYPE, json);
        answer
    }
}
