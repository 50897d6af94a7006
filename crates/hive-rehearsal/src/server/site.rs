//! The way of one request through the server: read, asked of the script, written down, answered.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use hyper::{HeaderMap, Request, Response, body::Incoming, http::request::Parts};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    answer, beside,
    body::{Cut, Playback},
    gate::{Answers, Door},
    intake::{Intake, Unread, body_value},
    ledger::{Ledger, Seen},
    route::{Endpoint, api_of, endpoint},
    socket::Connection,
};
use crate::{
    api::{self, error::ApiError},
    ask::{Api, Ask},
    mask,
    recording::{Entry, Recorder},
    scenario::{Scenario, fault::ErrorKind},
    script::{Act, Cue, Script},
};

/// What every connection shares.
#[derive(Debug)]
pub(crate) struct Site {
    scenario: Arc<Scenario>,
    script: Mutex<Script>,
    ledger: Arc<Ledger>,
    recorder: Option<Recorder>,
    door: Door,
    requests: AtomicU64,
    intake: Intake,
}

/// A request that was read.
pub(super) struct Received {
    pub(super) number: u64,
    pub(super) head: Parts,
    pub(super) bytes: Bytes,
}

impl Site {
    pub(crate) fn new(
        scenario: Scenario,
        ledger: Arc<Ledger>,
        recorder: Option<Recorder>,
        door: Door,
    ) -> Arc<Self> {
        let scenario = Arc::new(scenario);
        Arc::new(Self {
            script: Mutex::new(Script::new(Arc::clone(&scenario))),
            scenario,
            ledger,
            recorder,
            door,
            requests: AtomicU64::new(0),
            intake: Intake::default(),
        })
    }

    /// Asks the script, and writes down what was asked.
    fn decide(&self, api: Api, received: Received) -> Result<(Ask, Act), ApiError> {
        let body: Value = match serde_json::from_slice(&received.bytes) {
            Ok(body) => body,
            Err(error) => {
                self.note(received, None, None);
                let text = format!("The request body is not valid JSON: {error}");
                return Err(ApiError::bad_request(text));
            }
        };
        if let Err(error) = self.check(api, &received.head.headers, &body) {
            self.note(received, Some(body), None);
            return Err(error);
        }
        let ask = Ask::read(api, &body, received.bytes.len());
        let cue = {
            // A script that panicked has at worst miscounted.
            let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
            script.next(&ask, Timestamp::now())
        };
        tracing::info!(
            call = cue.call,
            rule = cue.rule.as_deref().unwrap_or("(plain)"),
            model = %hive_wire::text::printable(&ask.model),
            step = ask.step,
            "asked"
        );
        self.note(received, Some(body), Some((&ask, &cue)));
        Ok((ask, cue.act))
    }

    fn check(&self, api: Api, headers: &HeaderMap, body: &Value) -> Result<(), ApiError> {
        if self.scenario.strict {
            api::check(api, headers, body)?;
        }
        let model = body["model"].as_str().unwrap_or_default();
        if beside::knows(&self.scenario, model) {
            return Ok(());
        }
        Err(ApiError {
            kind: ErrorKind::ModelNotFound,
            message: None,
            model: model.to_owned(),
        })
    }

    async fn perform(
        &self,
        api: Api,
        decided: Result<(Ask, Act), ApiError>,
        number: u64,
        connection: Connection,
    ) -> Result<Response<Playback>, Cut> {
        let (ask, act) = match decided {
            Ok(decided) => decided,
            Err(error) => return Ok(answer::refusal(api, &error, number)),
        };
        let mut response = match act {
            Act::Reply(reply) => {
                tokio::time::sleep(reply.pace.delay.0).await;
                answer::reply(&ask, &reply)
            }
            Act::Break(reply, breaking) => {
                tokio::time::sleep(reply.pace.delay.0).await;
                let id = answer::request_id(number);
                answer::broken(&ask, &reply, &breaking, connection, &id)
            }
            Act::Refuse(error, headers, delay) => {
                tokio::time::sleep(delay).await;
                let mut response = answer::refusal(api, &error, number);
                answer::add(&mut response, &headers);
                response
            }
            Act::NoAnswer => std::future::pending().await,
            Act::Refused(time) => {
                connection.reset_at_end();
                self.door.shut(Some(time)).await;
                return Err(Cut);
            }
            Act::ResetConnections(connections) => {
                self.door.reset_next(connections);
                connection.reset_at_end();
                return Err(Cut);
            }
        };
        answer::sign(&mut response, api, number);
        Ok(response)
    }

    /// Writes a request down, for the recording and for tests.
    fn note(&self, received: Received, body: Option<Value>, asked: Option<(&Ask, &Cue)>) {
        let call = asked.map(|(_, cue)| cue.call);
        let rule = asked.and_then(|(_, cue)| cue.rule.clone());
        if self.recorder.is_none() && !self.ledger.keeps() {
            return;
        }
        let mut body = body.unwrap_or_else(|| body_value(&received.bytes));
        mask::json(&mut body);
        let mut entry = Entry {
            schema: 1,
            number: received.number,
            at: Timestamp::now().to_string(),
            method: received.head.method.to_string(),
            path: mask::path(&received.head.uri.to_string()),
            headers: mask::headers(&received.head.headers),
            body,
            call,
            rule,
            response: None,
        };
        if let Some(recorder) = &self.recorder {
            recorder.write(&entry);
        }
        let seen = Seen {
            number: entry.number,
            call,
            method: entry.method,
            path: entry.path,
            headers: entry.headers,
            body: Arc::new(entry.body.take()),
            rule: entry.rule,
            last_user: asked.map_or_else(String::new, |(ask, _)| mask::text(&ask.last_user)),
        };
        self.ledger.add(seen, received.bytes.len());
    }
}

impl Answers for Site {
    type Body = Playback;

    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Connection,
    ) -> Result<Response<Playback>, Cut> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let (head, body) = request.into_parts();
        let (bytes, room) = match self.intake.read(body).await {
            Ok(read) => read,
            Err(Unread::TooLarge) => {
                let error = ApiError::plain(ErrorKind::TooLarge, None);
                return Ok(answer::refusal(api_of(&head), &error, number));
            }
            Err(Unread::Gone) => return Err(Cut),
        };
        let received = Received {
            number,
            head,
            bytes,
        };
        let path = received.head.uri.path().to_owned();
        match endpoint(&received.head.method, &path) {
            Endpoint::Answer(api) => {
                let decided = self.decide(api, received);
                drop(room);
                self.perform(api, decided, number, connection).await
            }
            other => {
                let response = beside::answer(&self.scenario, other, &received);
                self.note(received, None, None);
                Ok(response)
            }
        }
    }
}
