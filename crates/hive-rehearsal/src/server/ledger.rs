//! What the model was asked, kept for tests.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::sync::watch;

/// One request, as the model saw it; secrets are masked.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The number of the request, from 1, over all requests.
    pub number: u64,
    /// The number of the call, when the script was asked for an answer.
    pub call: Option<u64>,
    /// `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Arc<Value>,
    /// The rule that answered; `None` for a plain answer.
    pub rule: Option<String>,
    /// The last text that a user wrote, as rules match it.
    pub last_user: String,
}

/// The model was not asked often enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model was asked {seen} times within a minute, not {wanted} times")]
pub struct TooFewRequests {
    /// How often it was asked.
    pub seen: u64,
    /// How often it should have been.
    pub wanted: u64,
}

/// Longer than any client takes that is going to ask.
const PATIENCE: Duration = Duration::from_secs(60);

/// The requests, the oldest forgotten when they get too many bytes.
#[derive(Debug)]
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
    calls: watch::Sender<u64>,
    keep_bytes: usize,
}

#[derive(Debug, Default)]
struct Pages {
    seen: VecDeque<(usize, Seen)>,
    bytes: usize,
}

impl Ledger {
    pub(crate) fn new(keep_bytes: usize) -> Self {
        Self {
            pages: Mutex::default(),
            calls: watch::Sender::new(0),
            keep_bytes,
        }
    }

    /// Whether anything is kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.keep_bytes > 0
    }

    /// Keeps a request whose body had `bytes`.
    pub(crate) fn add(&self, seen: Seen, bytes: usize) {
        let is_call = seen.call.is_some();
        if self.keeps() {
            let mut pages = self.pages();
            pages.bytes += bytes;
            pages.seen.push_back((bytes, seen));
            while pages.bytes > self.keep_bytes && pages.seen.len() > 1 {
                if let Some((bytes, _)) = pages.seen.pop_front() {
                    pages.bytes -= bytes;
                }
            }
        }
        if is_call {
            self.calls.send_modify(|calls| *calls += 1);
        }
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        let pages = self.pages();
        pages.seen.iter().map(|(_, seen)| seen.clone()).collect()
    }

    pub(crate) fn calls(&self) -> Vec<Seen> {
        let mut seen = self.all();
        seen.retain(|seen| seen.call.is_some());
        seen
    }

    pub(crate) async fn wait_for_calls(&self, wanted: u64) -> Result<Vec<Seen>, TooFewRequests> {
        let mut calls = self.calls.subscribe();
        let enough = calls.wait_for(|seen| *seen >= wanted);
        match tokio::time::timeout(PATIENCE, enough).await {
            Ok(_) => Ok(self.calls()),
            Err(_) => Err(TooFewRequests {
                seen: *self.calls.borrow(),
                wanted,
            }),
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // What a panic left behind is still a list of requests.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
