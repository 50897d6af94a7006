//! The calls of one connection that wait for a reply.
//!
//! Every entry is removed exactly once: by its reply, by its caller going away, or by the end of
//! the connection. After the end nothing can be registered any more.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{WireError, command::ReplyHead};

/// A reply line with its head already read.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) head: ReplyHead,
    pub(super) line: Bytes,
}

/// Why a connection ended.
#[derive(Debug, Clone)]
pub(super) enum Loss {
    /// The peer, or this client, closed it.
    Gone,
    /// The daemon refused the connection before it read anything from it.
    TurnedAway(WireError),
    /// The peer sent something that is no reply.
    Protocol(String),
}

/// The calls that wait, or why none can any more.
#[derive(Debug)]
pub(super) struct Pending(Mutex<State>);

#[derive(Debug)]
enum State {
    Open(HashMap<i64, oneshot::Sender<Reply>>),
    Ended(Loss),
}

impl Pending {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::Open(HashMap::new())))
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(*self.state(), State::Open(_))
    }

    /// Announces a call. Its entry lives no longer than what is returned.
    pub(super) fn register(&self, number: i64) -> Result<Waiting<'_>, Loss> {
        match &mut *self.state() {
            State::Ended(loss) => Err(loss.clone()),
            State::Open(calls) => {
                let (sender, receiver) = oneshot::channel();
                calls.insert(number, sender);
                Ok(Waiting {
                    pending: self,
                    number,
                    receiver,
                })
            }
        }
    }

    /// Hands a reply to the call it answers; one that nobody waits for any more is dropped.
    pub(super) fn settle(&self, number: i64, reply: Reply) {
        let sender = match &mut *self.state() {
            State::Open(calls) => calls.remove(&number),
            State::Ended(_) => None,
        };
        if let Some(sender) = sender {
            // The caller may go away at this very moment; then the reply is late like any other.
            drop(sender.send(reply));
        }
    }

    /// Ends every waiting call. The first reason stands.
    pub(super) fn end(&self, loss: Loss) {
        let mut state = self.state();
        if let State::Open(_) = *state {
            *state = State::Ended(loss);
        }
    }

    fn forget(&self, number: i64) {
        if let State::Open(calls) = &mut *self.state() {
            calls.remove(&number);
        }
    }

    fn loss(&self) -> Loss {
        match &*self.state() {
            State::Ended(loss) => loss.clone(),
            State::Open(_) => Loss::Gone,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No critical section leaves the map half changed, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for its reply; dropped, it is forgotten.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    pending: &'a Pending,
    number: i64,
    receiver: oneshot::Receiver<Reply>,
}

impl Waiting<'_> {
    /// Whether the reply is there.
    pub(super) fn is_answered(&self) -> bool {
        !self.receiver.is_empty()
    }

    pub(super) async fn reply(mut self) -> Result<Reply, Loss> {
        match (&mut self.receiver).await {
            Ok(reply) => Ok(reply),
            Err(_) => Err(self.pending.loss()),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pending.forget(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: i64) -> Reply {
        let line = format!(r#"{{"ok":true,"id":{number}}}"#);
        Reply {
            head: serde_json::from_str(&line).unwrap(),
            line: line.into(),
        }
    }

    fn waiting_calls(pending: &Pending) -> usize {
        match &*pending.state() {
            State::Open(calls) => calls.len(),
            State::Ended(_) => 0,
        }
    }

    #[tokio::test]
    async fn a_dropped_call_leaves_no_entry_and_its_late_reply_is_ignored() {
        let pending = Pending::new();
        let kept = pending.register(1).unwrap();
        drop(pending.register(2).unwrap());
        assert_eq!(waiting_calls(&pending), 1);

        pending.settle(2, reply(2));
        pending.settle(1, reply(1));
        assert!(kept.reply().await.unwrap().head.ok);
        assert_eq!(waiting_calls(&pending), 0);
    }

    #[tokio::test]
    async fn the_first_reason_for_the_end_stands() {
        let pending = Pending::new();
        let waiting = pending.register(1).unwrap();
        pending.end(Loss::Protocol("nonsense".into()));
        pending.end(Loss::Gone);
        assert!(matches!(waiting.reply().await, Err(Loss::Protocol(_))));
        assert!(matches!(pending.register(2), Err(Loss::Protocol(_))));
    }
}
