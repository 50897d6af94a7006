//! The recording proxy: passes requests on to a real model and writes down what it answers.
//!
//! It listens on loopback only, streams answers through as they come, and never writes a secret
//! down (`mask.rs`). What it does not know it passes on unchanged.

mod tee;
mod upstream;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{self, HeaderValue},
};
use jiff::Timestamp;
use serde_json::json;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::tee::Tee;
pub(crate) use self::upstream::Upstream;
use crate::{
    mask,
    recording::{self, Entry, Recorder},
    server::{Answers, Connection, Cut, Gate, Intake, StartError, Unread, body_value},
};

/// Headers that belong to one connection, not to the request.
const HOP_BY_HOP: [header::HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHENTICATE,
];

/// A proxy that is running.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

/// What every connection of the proxy shares.
#[derive(Debug)]
struct Relay {
    upstream: Upstream,
    recorder: Arc<Recorder>,
    tasks: TaskTracker,
    intake: Intake,
    requests: AtomicU64,
}

impl Proxy {
    /// Listens, and records to `out`.
    pub(crate) fn start(
        upstream: Upstream,
        host: IpAddr,
        port: u16,
        out: &Path,
    ) -> Result<Self, StartError> {
        let recorder = Recorder::open(out).map_err(|source| StartError::Record {
            path: out.to_owned(),
            source,
        })?;
        let (gate, _) = Gate::open(host, port)?;
        let address = gate.address();
        let tasks = TaskTracker::new();
        let cancel = CancellationToken::new();
        let relay = Relay {
            upstream,
            recorder: Arc::new(recorder),
            tasks: tasks.clone(),
            intake: Intake::default(),
            requests: AtomicU64::new(0),
        };
        tasks.spawn(gate.run(Arc::new(relay), tasks.clone(), cancel.clone()));
        Ok(Self {
            address,
            tasks,
            cancel,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Ends every connection; what was under way is written down as incomplete.
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Answers for Relay {
    type Body = BoxBody<Bytes, hyper::Error>;

    async fn answer(
        &self,
        request: Request<Incoming>,
        _: Connection,
    ) -> Result<Response<Self::Body>, Cut> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let (head, body) = request.into_parts();
        let (bytes, room) = match self.intake.read(body).await {
            Ok(read) => read,
            Err(Unread::TooLarge) => {
                return Ok(failure(StatusCode::PAYLOAD_TOO_LARGE, "too large"));
            }
            Err(Unread::Gone) => return Err(Cut),
        };
        let mut masked = body_value(&bytes);
        mask::json(&mut masked);
        let entry = Entry {
            schema: 1,
            number,
            at: Timestamp::now().to_string(),
            method: head.method.to_string(),
            path: mask::path(&head.uri.to_string()),
            headers: mask::headers(&head.headers),
            body: masked,
            call: None,
            rule: None,
            response: None,
        };
        let mut request = Request::new(Full::new(bytes));
        *request.method_mut() = head.method;
        *request.uri_mut() = head.uri;
        *request.headers_mut() = passed_on(head.headers);
        // What is compressed cannot be read in a recording.
        request.headers_mut().remove(header::ACCEPT_ENCODING);
        match self.upstream.send(request, &self.tasks).await {
            Ok(response) => {
                let (mut head, body) = response.into_parts();
                head.headers = passed_on(head.headers);
                let recorder = Arc::clone(&self.recorder);
                let tee = Tee::new(body, &head, entry, recorder, room);
                Ok(Response::from_parts(head, tee.boxed()))
            }
            Err(error) => {
                tracing::warn!(%error, "the real model cannot be reached");
                self.recorder.write(&Entry {
                    response: Some(recording::Response {
                        status: 0,
                        headers: BTreeMap::new(),
                        body: json!(error.to_string()),
                        is_complete: false,
                    }),
                    ..entry
                });
                Ok(failure(StatusCode::BAD_GATEWAY, &error.to_string()))
            }
        }
    }
}

/// The headers without those of the connection, and without a length that hyper knows better.
fn passed_on(mut headers: HeaderMap) -> HeaderMap {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove(header::HOST);
    headers.remove(header::CONTENT_LENGTH);
    headers
}

fn failure(status: StatusCode, message: &str) -> Response<BoxBody<Bytes, hyper::Error>> {
    let message = format!("hive-rehearsal record: {message}");
    let body = json!({"type": "error", "error": {"type": "api_error", "message": message}});
    let body = Full::new(Bytes::from(body.to_string()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
