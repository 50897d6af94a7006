//! A host in memory: an inbox with leases, what was reported, and requests to make.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hive_harness::surface::{HostChannel, Surface, SurfaceError};
use hive_wire::{
    ControlId, MessageId, ReqId, SendKey, Timestamp, TurnId,
    agent::{Message, RequeueReason, TurnClosed, TurnResult},
    control::{Control, ControlAction, ControlDone, ControlRequest},
    report::{PostEvents, PostState, PostTurnCounts, PostedKind},
};
use serde_json::Value;
use tokio::sync::Notify;

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the loop did to its mail, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Leased(MessageId),
    Acked(Vec<i64>),
    Requeued(RequeueReason),
}

/// Everything that a test may look at.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) calls: Vec<Call>,
    pub(crate) turns: Vec<TurnId>,
    pub(crate) events: Vec<(u64, PostedKind, Value)>,
    pub(crate) states: Vec<PostState>,
    pub(crate) rows: Vec<PostTurnCounts>,
    pub(crate) done: Vec<ControlDone>,
    pub(crate) parent: Vec<String>,
    pub(crate) unread: u32,
    is_away: bool,
    /// How long it takes to end a turn.
    slowness: Duration,
    inbox: VecDeque<Message>,
    open: Option<(TurnId, Vec<Message>)>,
    next_id: i64,
    requests: Vec<ControlRequest>,
    unsent: Vec<ControlRequest>,
    next_seq: u64,
}

impl Book {
    /// The data of the events of one kind.
    pub(crate) fn of(&self, kind: PostedKind) -> Vec<&Value> {
        let events = self.events.iter().filter(|(_, known, _)| *known == kind);
        events.map(|(_, _, data)| data).collect()
    }

    /// The texts of all notes.
    pub(crate) fn notes(&self) -> String {
        let texts = self.of(PostedKind::Note).into_iter();
        texts
            .filter_map(|data| data["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn acks(&self) -> usize {
        let is_ack = |call: &&Call| matches!(call, Call::Acked(_));
        self.calls.iter().filter(is_ack).count()
    }

    pub(crate) fn has(&self, call: &Call) -> bool {
        self.calls.contains(call)
    }

    fn give_back(&mut self) -> u32 {
        let held = self.open.take().map(|(_, held)| held).unwrap_or_default();
        let count = u32::try_from(held.len()).unwrap();
        for message in held.into_iter().rev() {
            self.inbox.push_front(message);
        }
        count
    }
}

/// The host.
#[derive(Debug, Default)]
pub(crate) struct FakeHost {
    book: Mutex<Book>,
    changed: Notify,
}

impl FakeHost {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let changed = change(&mut self.book());
        self.changed.notify_waiters();
        changed
    }

    /// Looks at the book.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Book) -> T) -> T {
        look(&self.book())
    }

    /// Stores a message from bob.
    pub(crate) fn send(&self, body: &str) -> MessageId {
        self.change(|book| {
            book.next_id += 1;
            let id = MessageId(book.next_id);
            book.inbox.push_back(Message {
                id,
                from: "bob".parse().unwrap(),
                to: "ada".to_owned(),
                body: body.to_owned(),
                in_reply_to: None,
                sent_at: Timestamp::from_millis(0),
                delivery: 0,
            });
            id
        })
    }

    /// Asks the harness to do something.
    pub(crate) fn ask(&self, action: ControlAction) -> ControlId {
        self.change(|book| {
            let id = ControlId(i64::try_from(book.requests.len()).unwrap() + 100);
            let request = ControlRequest {
                request_id: id,
                action,
            };
            book.requests.push(request.clone());
            book.unsent.push(request);
            id
        })
    }

    /// Sends every request again, answered or not.
    pub(crate) fn ask_again(&self) {
        self.change(|book| book.unsent = book.requests.clone());
    }

    /// What the harness answered.
    pub(crate) async fn answer(&self, id: ControlId) -> ControlDone {
        self.until("an answer", |book| {
            book.done.iter().find(|done| done.request_id == id).cloned()
        })
        .await
    }

    /// Makes the host deaf, or lets it hear again.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.change(|book| book.is_away = is_away);
    }

    /// Has every end of a turn take so long.
    pub(crate) fn be_slow(&self, slowness: Duration) {
        self.change(|book| book.slowness = slowness);
    }

    async fn take_time(&self) {
        let slowness = self.book().slowness;
        if !slowness.is_zero() {
            tokio::time::sleep(slowness).await;
        }
    }

    /// Waits until `look` finds something.
    pub(crate) async fn until<T>(&self, what: &str, look: impl Fn(&Book) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = look(&self.book()) {
                    return found;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => {
                let book = self.book();
                panic!(
                    "no {what}: {:?}\n{}\n{:#?}",
                    book.calls,
                    book.notes(),
                    book.of(PostedKind::TurnEnd)
                );
            }
        }
    }

    /// Waits until it holds.
    pub(crate) async fn wait(&self, what: &str, holds: impl Fn(&Book) -> bool) {
        self.until(what, |book| holds(book).then_some(())).await;
    }

    /// Waits for the end of so many turns.
    pub(crate) async fn turns_ended(&self, count: usize) {
        self.wait("end of the turn", |book| {
            book.of(PostedKind::TurnEnd).len() >= count
        })
        .await;
    }

    fn away(&self) -> Result<(), SurfaceError> {
        if self.book().is_away {
            return Err(SurfaceError::Away);
        }
        Ok(())
    }

    fn close(&self, turn: &TurnId, result: TurnResult, keep: &[MessageId]) -> TurnClosed {
        self.change(|book| {
            if book.open.as_ref().is_none_or(|(open, _)| open != turn) {
                return closed(TurnResult::Unknown);
            }
            let call = match result {
                TurnResult::Acked => {
                    if let Some((_, held)) = &mut book.open {
                        held.retain(|message| !keep.contains(&message.id));
                    }
                    Call::Acked(keep.iter().map(|id| id.0).collect())
                }
                _ => unreachable!("a requeue notes its reason itself"),
            };
            book.give_back();
            book.calls.push(call);
            closed(result)
        })
    }
}

fn closed(result: TurnResult) -> TurnClosed {
    TurnClosed {
        result,
        acked: 0,
        requeued: 0,
        dead: 0,
    }
}

impl Surface for FakeHost {
    async fn recv_next(
        &self,
        turn: &TurnId,
        _req: &ReqId,
        wait_seconds: u32,
    ) -> Result<Option<Message>, SurfaceError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let taken = {
                let mut book = self.book();
                if book.open.as_ref().is_none_or(|(open, _)| open != turn) {
                    book.give_back();
                    book.open = Some((turn.clone(), Vec::new()));
                    book.turns.push(turn.clone());
                }
                let taken = book.inbox.pop_front().map(|mut message| {
                    message.delivery += 1;
                    message
                });
                if let Some(message) = &taken {
                    book.calls.push(Call::Leased(message.id));
                    let (_, held) = book.open.as_mut().unwrap();
                    held.push(message.clone());
                }
                taken
            };
            if taken.is_some() {
                self.changed.notify_waiters();
                return Ok(taken);
            }
            if wait_seconds == 0 {
                return Ok(None);
            }
            changed.await;
        }
    }

    async fn inbox_unread(&self) -> Result<u32, SurfaceError> {
        let book = self.book();
        Ok(book.unread + u32::try_from(book.inbox.len()).unwrap())
    }

    async fn ack_turn(&self, turn: &TurnId, ids: &[MessageId]) -> Result<TurnClosed, SurfaceError> {
        self.take_time().await;
        Ok(self.close(turn, TurnResult::Acked, ids))
    }

    async fn requeue_inflight(
        &self,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> Result<TurnClosed, SurfaceError> {
        self.take_time().await;
        Ok(self.change(|book| {
            if book.open.as_ref().is_none_or(|(open, _)| open != turn) {
                return closed(TurnResult::Unknown);
            }
            book.give_back();
            book.calls.push(Call::Requeued(reason));
            closed(TurnResult::Requeued)
        }))
    }

    async fn post_turn_counts(&self, counts: &PostTurnCounts) -> Result<(), SurfaceError> {
        self.away()?;
        self.change(|book| book.rows.push(counts.clone()));
        Ok(())
    }

    async fn send_to_parent(&self, body: &str, _key: &SendKey) -> Result<MessageId, SurfaceError> {
        self.change(|book| book.parent.push(body.to_owned()));
        Ok(MessageId(0))
    }

    async fn wake_external(&self, _from: &str, body: &str) -> Result<MessageId, SurfaceError> {
        Ok(self.send(body))
    }
}

impl HostChannel for FakeHost {
    async fn post_events(&self, events: &PostEvents) -> Result<u64, SurfaceError> {
        self.away()?;
        Ok(self.change(|book| {
            for event in &events.events {
                if event.seq > book.next_seq {
                    book.next_seq = event.seq;
                    let data = serde_json::from_str(event.data.get()).unwrap();
                    book.events.push((event.seq, event.kind, data));
                }
            }
            book.next_seq + 1
        }))
    }

    async fn post_state(&self, state: &PostState) -> Result<(), SurfaceError> {
        self.away()?;
        self.change(|book| book.states.push(state.clone()));
        Ok(())
    }

    async fn control(&self, poll: &Control) -> Result<Vec<ControlRequest>, SurfaceError> {
        self.away()?;
        self.change(|book| book.done.extend(poll.done.iter().cloned()));
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            self.away()?;
            let requests = std::mem::take(&mut self.book().unsent);
            if !requests.is_empty() {
                return Ok(requests);
            }
            changed.await;
        }
    }
}
