//! What the harness says of itself: the authoritative state (T28) and the events of its turns.
//!
//! Everything said here is kept until the [`reporter`](crate::reporter) has brought it to the host,
//! within a bound of bytes: when the host is away for long, the oldest lines of engines go first,
//! and the hole in the numbers tells the host so. Saying something never waits.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hive_wire::{
    HarnessEpoch, MessageId, Timestamp, TurnId,
    report::{
        HarnessStatus, MAX_EVENT_DATA, PostState, PostTurnCounts, PostedEvent, PostedKind,
        TurnState,
    },
    text,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;

/// The most bytes of a message's body in `turn_start`.
const MAX_BODY_SHOWN: usize = 4096;
/// The most characters of a note.
const MAX_NOTE: usize = 8_000;
/// How much of a line that is too long is shown.
const MAX_HEAD: usize = 4_000;
/// The most events that go out at once.
const MAX_BATCH: usize = 256;
/// The most bytes of events that go out at once; a line of the wire has a megabyte.
const MAX_BATCH_BYTES: usize = 400 * 1024;
/// What an event costs besides its data.
const EVENT_OVERHEAD: usize = 96;
/// The most rows of statistics that wait for the host.
const MAX_ROWS: usize = 256;

/// The state and the events of one life of the harness.
#[derive(Debug)]
pub struct Bus {
    epoch: HarnessEpoch,
    max_bytes: usize,
    inner: Mutex<Inner>,
    /// Says that there is something to report.
    work: Notify,
}

#[derive(Debug)]
struct Inner {
    state: PostState,
    is_state_due: bool,
    events: VecDeque<PostedEvent>,
    bytes: usize,
    next_seq: u64,
    rows: VecDeque<PostTurnCounts>,
}

/// What waits to be reported.
#[derive(Debug, Default)]
pub struct Work {
    /// The state, when it has changed.
    pub state: Option<PostState>,
    /// The next events, taken off the bus.
    pub events: Vec<PostedEvent>,
    /// The oldest row of statistics, still on the bus.
    pub row: Option<PostTurnCounts>,
}

/// How a turn began, for `turn_start` (T3).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TurnStart<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// Who wrote.
    pub from: &'a str,
    /// What was said; cut.
    pub body: &'a str,
    /// How many more messages wait.
    pub unread: u32,
    /// The messages that the turn is about.
    pub message_ids: &'a [MessageId],
    /// How often the message has been handed over.
    pub delivery: u32,
}

/// How a turn ended, for `turn_end` (T10).
#[derive(Debug, Clone, Serialize)]
pub struct TurnEnd<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// Whether its messages are dealt with.
    pub ok: bool,
    /// The outcome in a word.
    pub outcome: &'a str,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
    /// The loop's own cost.
    pub timing: Timing,
}

/// The loop's own cost in a turn, in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Timing {
    /// From the message's arrival until the prompt was on its way to a running engine.
    pub receive_to_spawn_us: u64,
    /// From the engine's end until the host had confirmed the end of the turn.
    pub exit_to_settled_us: u64,
    /// How long the engine ran.
    pub engine_us: u64,
    /// From the message's arrival until the end of the turn.
    pub total_us: u64,
    /// When the prompt was on its way to a running engine, in microseconds since 1970.
    pub spawned_at_us: u64,
}

impl Bus {
    /// A bus that keeps at most `max_bytes` of events.
    pub fn new(epoch: HarnessEpoch, max_bytes: usize) -> Self {
        let state = PostState {
            turn_state: TurnState::Idle,
            since: Timestamp::now(),
            status: HarnessStatus::Online,
            model: String::new(),
            context_tokens: 0,
            window: 0,
            current_tool: None,
            engine: None,
            engine_version: None,
            credential: None,
            resets_at: None,
            rehearsed: false,
        };
        Self {
            epoch,
            max_bytes,
            inner: Mutex::new(Inner {
                state,
                is_state_due: true,
                events: VecDeque::new(),
                bytes: 0,
                next_seq: 1,
                rows: VecDeque::new(),
            }),
            work: Notify::new(),
        }
    }

    /// The name of this life of the harness.
    pub fn epoch(&self) -> &HarnessEpoch {
        &self.epoch
    }

    /// The state as it is now.
    pub fn state(&self) -> PostState {
        self.lock().state.clone()
    }

    /// Says what the loop does from now on (T28).
    pub fn set_turn_state(&self, turn_state: TurnState) {
        self.change_state(|state| {
            if state.turn_state != turn_state {
                state.turn_state = turn_state;
                state.since = Timestamp::now();
                state.current_tool = None;
            }
        });
    }

    /// Says how the harness is doing, and until when if somebody said.
    pub fn set_status(&self, status: HarnessStatus, resets_at: Option<Timestamp>) {
        self.change_state(|state| {
            state.status = status;
            state.resets_at = resets_at;
        });
    }

    /// Says which model the next turn uses and how large its context is.
    pub fn set_model(&self, model: &str, window: u64) {
        self.change_state(|state| {
            model.clone_into(&mut state.model);
            state.window = window;
        });
    }

    /// Says which engine runs the turns.
    pub fn set_engine(&self, engine: &str, version: &str) {
        self.change_state(|state| {
            state.engine = Some(engine.to_owned());
            state.engine_version = Some(version.to_owned());
        });
    }

    /// Says how full the context is.
    pub fn set_context(&self, context_tokens: u64) {
        self.change_state(|state| state.context_tokens = context_tokens);
    }

    /// Says which tool runs.
    pub fn set_tool(&self, tool: Option<&str>) {
        self.change_state(|state| state.current_tool = tool.map(str::to_owned));
    }

    /// A turn began.
    pub fn turn_start(&self, start: &TurnStart<'_>) {
        let cut = cut_bytes(start.body, MAX_BODY_SHOWN);
        self.say(
            PostedKind::TurnStart,
            &TurnStart {
                body: cut,
                ..*start
            },
        );
    }

    /// A turn ended.
    pub fn turn_end(&self, end: &TurnEnd<'_>) {
        self.say(PostedKind::TurnEnd, end);
    }

    /// The engine printed an object.
    pub fn stream(&self, line: &RawValue) {
        #[derive(Serialize)]
        struct Data<'a> {
            value: &'a RawValue,
        }
        let bytes = line.get().len();
        if bytes + 64 > MAX_EVENT_DATA {
            self.stream_cut(bytes as u64, line.get());
        } else {
            self.say(PostedKind::Stream, &Data { value: line });
        }
    }

    /// The engine printed a line that is too long to be shown whole.
    pub fn stream_cut(&self, bytes: u64, head: &str) {
        let value = serde_json::json!({
            "value": { "cut": true, "bytes": bytes, "head": text::shorten(head, MAX_HEAD) }
        });
        self.say(PostedKind::Stream, &value);
    }

    /// A remark of the harness, or a line of the engine's stderr.
    pub fn note(&self, words: &str) {
        self.say_text(PostedKind::Note, words);
    }

    /// A line of a login dialogue.
    pub fn login(&self, words: &str) {
        self.say_text(PostedKind::Login, words);
    }

    /// Events were missed by the harness itself.
    pub fn gap(&self, dropped: u64) {
        self.say(PostedKind::Gap, &serde_json::json!({ "dropped": dropped }));
    }

    /// The counts of an engine run.
    pub fn counts(&self, row: PostTurnCounts) {
        let mut inner = self.lock();
        if inner.rows.len() == MAX_ROWS {
            inner.rows.pop_front();
            tracing::warn!("the host is away for long: the oldest row of statistics is dropped");
        }
        inner.rows.push_back(row);
        drop(inner);
        self.work.notify_one();
    }

    /// The host may have forgotten the state: it is due again.
    pub fn repeat_state(&self) {
        self.lock().is_state_due = true;
        self.work.notify_one();
    }

    /// Waits until there is something to report, and takes it. Cancel-safe: nothing is taken
    /// before it is returned.
    pub async fn next_work(&self) -> Work {
        loop {
            let notified = self.work.notified();
            if let Some(work) = self.take_work() {
                return work;
            }
            notified.await;
        }
    }

    /// What there is to report, if there is anything.
    pub fn take_work(&self) -> Option<Work> {
        let mut inner = self.lock();
        let state = std::mem::take(&mut inner.is_state_due).then(|| inner.state.clone());
        let mut events = Vec::new();
        let mut bytes = 0;
        while events.len() < MAX_BATCH {
            let Some(next) = inner.events.front() else {
                break;
            };
            bytes += cost(next);
            if bytes > MAX_BATCH_BYTES && !events.is_empty() {
                break;
            }
            let event = inner.events.pop_front().expect("there is a first event");
            inner.bytes -= cost(&event);
            events.push(event);
        }
        let row = inner.rows.front().cloned();
        let is_something = state.is_some() || !events.is_empty() || row.is_some();
        is_something.then_some(Work { state, events, row })
    }

    /// A row has been reported, or never will be.
    pub fn row_done(&self, row: &PostTurnCounts) {
        let mut inner = self.lock();
        if inner.rows.front() == Some(row) {
            inner.rows.pop_front();
        }
    }

    fn change_state(&self, change: impl FnOnce(&mut PostState)) {
        let mut inner = self.lock();
        let before = inner.state.clone();
        change(&mut inner.state);
        if inner.state == before {
            return;
        }
        inner.is_state_due = true;
        let shown = (
            inner.state.turn_state,
            inner.state.status,
            &inner.state.model,
        );
        let is_event = shown != (before.turn_state, before.status, &before.model);
        let state = inner.state.clone();
        drop(inner);
        if is_event {
            self.say(PostedKind::State, &state);
        }
        self.work.notify_one();
    }

    fn say_text(&self, kind: PostedKind, words: &str) {
        let words = text::shorten(words, MAX_NOTE);
        self.say(kind, &serde_json::json!({ "text": words }));
    }

    fn say<T: Serialize>(&self, kind: PostedKind, data: &T) {
        let data = match to_raw_value(data) {
            Ok(data) => data,
            Err(error) => {
                tracing::error!(%error, "an event that is no JSON");
                return;
            }
        };
        let mut inner = self.lock();
        let event = PostedEvent {
            seq: inner.next_seq,
            at: Timestamp::now(),
            kind,
            data,
        };
        inner.next_seq += 1;
        inner.bytes += cost(&event);
        inner.events.push_back(event);
        while inner.bytes > self.max_bytes {
            inner.drop_oldest();
        }
        drop(inner);
        self.work.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Drops the oldest line of an engine, or the oldest event when there is none: what a turn was
    /// and how it ended is worth more than what was said in it.
    fn drop_oldest(&mut self) {
        let is_line =
            |event: &PostedEvent| matches!(event.kind, PostedKind::Stream | PostedKind::Note);
        let oldest = self.events.iter().position(is_line).unwrap_or(0);
        match self.events.remove(oldest) {
            Some(event) => self.bytes -= cost(&event),
            None => self.bytes = 0,
        }
    }
}

fn cost(event: &PostedEvent) -> usize {
    event.data.get().len() + EVENT_OVERHEAD
}

/// The first `max` bytes of a text, cut between characters.
fn cut_bytes(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
