//! The event log: what happened, for live views, in a file of its own.
//!
//! It is no promise. The durable truth is in the store; this log may lose events, and then says so.
//! So nothing here ever stops or fails the hive: [`EventLog::publish`] neither blocks nor fails, and
//! a damaged file is put aside for a new one when the log is opened. One that is damaged while it is
//! open costs events, with an error in the journal, until the next start.
//!
//! - An event's number is assigned under one lock when it is published, and is never used again in
//!   its epoch, not after pruning, not after an unclean end. An epoch is the life of one file.
//! - A number without an event is a loss. A page that spans one has `gap` set.
//! - Subscribers are told of a number only when everything up to it can be read, so whoever
//!   subscribes, reads, and reads on from `next` when woken misses nothing.
//! - Everything is bounded: the queue, an event, a page, the file. The oldest events go first from
//!   the file, the newest from a full queue.
//! - What agents post goes to streams, each with a budget of its own ([`EventLog::publish_stream`]):
//!   nobody can push out the hive's own events, nor another agent's.
//!
//! The log does not know what events mean. `publish` hands an event to one writer thread, which
//! writes groups; [`EventLog::close`] (or dropping the log) writes the rest and joins it.

mod aside;
mod error;
mod event;
mod file;
mod queue;
mod read;
mod readers;
mod stream;
mod writer;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use hive_wire::host::{EventPage, EventPosition, EventRow};
use tokio::sync::watch;

use crate::pace;

pub use error::EventLogError;
pub use event::{Event, EventData, MAX_LABEL, TOO_LARGE};
pub use file::Opening;
pub use stream::StreamMark;

use queue::{Capacity, Queue};
use readers::Readers;
use writer::Writer;

/// The most events in one page.
pub const MAX_PAGE_EVENTS: usize = 1000;
/// The most bytes of one page as JSON, so that it fits in a line of the wire with its envelope.
pub const MAX_PAGE_BYTES: usize = 900 * 1024;

/// The largest event that any limit allows: pages must always have room for one.
const MAX_EVENT_BYTES: usize = 512 * 1024;
/// Room for a marker, which no limit may refuse.
const MIN_EVENT_BYTES: usize = 512;
const READERS: usize = 3;

/// How much the log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most so many events.
    pub max_events: usize,
    /// At most about so many bytes.
    pub max_bytes: usize,
    /// At most so many events in one stream …
    pub stream_events: usize,
    /// … and about so many bytes.
    pub stream_bytes: usize,
    /// About so many bytes in all streams together.
    pub streams_bytes: usize,
    /// A larger event is replaced by a [`TOO_LARGE`] marker; between 512 bytes and 512 KiB.
    pub max_event_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_events: 200_000,
            max_bytes: 64 * 1024 * 1024,
            stream_events: 20_000,
            stream_bytes: 16 * 1024 * 1024,
            streams_bytes: 512 * 1024 * 1024,
            max_event_bytes: 64 * 1024,
        }
    }
}

/// A page of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// The events, oldest first.
    pub events: Vec<EventRow>,
    /// Whether there may be earlier ones.
    pub more: bool,
}

/// How a log works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How much it keeps.
    pub limits: Limits,
    /// How many events may wait for the writer.
    pub queue_events: usize,
    /// How many bytes of memory they may take, about.
    pub queue_bytes: usize,
    /// How long the writer waits after a group for the next one to gather. The first event after a
    /// quiet time does not wait.
    pub linger: Duration,
    /// How long the writer waits for whoever else locks the file before it gives a group up.
    pub busy: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            queue_events: 16 * 1024,
            queue_bytes: 16 * 1024 * 1024,
            linger: Duration::from_millis(30),
            busy: Duration::from_secs(5),
        }
    }
}

/// An open event log. Share it in an [`Arc`].
#[derive(Debug)]
pub struct EventLog {
    epoch: i64,
    opening: Opening,
    marks: BTreeMap<String, StreamMark>,
    max_event_bytes: usize,
    queue: Arc<Queue>,
    readers: Readers,
    readable: watch::Receiver<i64>,
    writer: Mutex<Option<JoinHandle<Result<(), EventLogError>>>>,
}

impl EventLog {
    /// Opens the log at `path`, or begins one. [`Self::opening`] says how it went.
    ///
    /// One process at a time: the caller holds the lock of the hive's root.
    ///
    /// # Errors
    /// [`EventLogError::Open`] when the place does not work; [`EventLogError::Thread`].
    pub fn open(path: &Path, limits: Limits) -> Result<Self, EventLogError> {
        Self::open_with(
            path,
            Options {
                limits,
                ..Options::default()
            },
        )
    }

    /// [`Self::open`] with everything stated.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_with(path: &Path, options: Options) -> Result<Self, EventLogError> {
        let mut limits = options.limits;
        limits.max_event_bytes = limits
            .max_event_bytes
            .clamp(MIN_EVENT_BYTES, MAX_EVENT_BYTES);
        let file = file::open(path, options.busy)?;
        let epoch = file.head.epoch;
        tracing::info!(epoch, opening = ?file.opening, "event log opened");
        let marks =
            stream::marks(&file.connection).map_err(|error| EventLogError::open(path, error))?;
        let readers = Readers::open(path, READERS, options.busy)?;
        let capacity = Capacity {
            events: options.queue_events,
            weight: options.queue_bytes,
        };
        let next = file.head.high + 1;
        let queue = Arc::new(Queue::new(capacity, next, file.head.reserved));
        let (sender, readable) = watch::channel(file.head.high);
        let writer = Writer {
            connection: file.connection,
            head: file.head,
            limits,
            linger: options.linger,
            queue: Arc::clone(&queue),
            readable: sender,
            wal: file::wal_path(path),
            failed: 0,
        };
        let thread = thread::Builder::new()
            .name("event-log".into())
            .spawn(move || {
                pace::step_back();
                writer.run()
            })
            .map_err(EventLogError::Thread)?;
        Ok(Self {
            epoch,
            opening: file.opening,
            marks,
            max_event_bytes: limits.max_event_bytes,
            queue,
            readers,
            readable,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// How the log began: anew, resumed, or in place of a damaged file.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Where every stream stood when the log was opened.
    pub fn marks(&self) -> &BTreeMap<String, StreamMark> {
        &self.marks
    }

    /// The newest position that can be read.
    pub fn position(&self) -> EventPosition {
        EventPosition {
            epoch: self.epoch,
            seq: *self.readable.borrow(),
        }
    }

    /// How many events were lost since the log was opened: the queue was full, or they could not be
    /// written.
    pub fn lost(&self) -> u64 {
        self.queue.lost()
    }

    /// Numbers an event and hands it to the writer. Never blocks and never fails: when the queue is
    /// full or the log is closed the event is lost, which readers see as a gap.
    pub fn publish(&self, mut event: Event) {
        let weight = event.fit(self.max_event_bytes);
        self.queue.push(event, weight);
    }

    /// Numbers the events of a stream, one after the other, and hands them to the writer; each with
    /// where the stream stands after it. They are all about the same agent. Returns the last number:
    /// once it can be read, the events and the stream's mark are in the file. What there is no room
    /// for is lost, as with [`Self::publish`].
    pub fn publish_stream(
        &self,
        events: impl IntoIterator<Item = (Event, StreamMark)>,
    ) -> EventPosition {
        let events = events.into_iter().map(|(mut event, mark)| {
            let weight = event.fit(self.max_event_bytes);
            (event, weight, Some(mark))
        });
        // Weighed before the queue is locked.
        let events: Vec<_> = events.collect();
        EventPosition {
            epoch: self.epoch,
            seq: self.queue.push_all(events),
        }
    }

    /// Reads the events after a position, oldest first; without a position, the newest ones.
    ///
    /// `limit` is capped at [`MAX_PAGE_EVENTS`], the page at [`MAX_PAGE_BYTES`]. A position of
    /// another epoch starts from the oldest event that is kept, with `gap` set. Also `gap` says that
    /// numbers between the asked position and `next` were pruned or lost; without a position, that
    /// some were lost among those shown. Reading on from `next` returns every event exactly once.
    ///
    /// It reads a disk: an async caller runs it where blocking is allowed.
    ///
    /// # Errors
    /// [`EventLogError::Storage`] and [`EventLogError::Closed`].
    pub fn read(
        &self,
        after: Option<EventPosition>,
        limit: usize,
        about: Option<&str>,
    ) -> Result<EventPage, EventLogError> {
        self.readers
            .with(|connection| read::page(connection, self.epoch, after, limit, about))
    }

    /// Reads the last events before a position, oldest first; nothing before one of another epoch.
    ///
    /// Capped as [`Self::read`] is. Reading on before the first event of each page, until `more` is
    /// false, returns every event that is kept exactly once.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_before(
        &self,
        before: EventPosition,
        limit: usize,
        about: Option<&str>,
    ) -> Result<Earlier, EventLogError> {
        let before_seq = if before.epoch == self.epoch {
            before.seq
        } else {
            0
        };
        self.readers
            .with(|connection| read::page_before(connection, before_seq, limit, about))
    }

    /// Follows the number of the newest event that can be read. Subscribe first, then read.
    pub fn subscribe(&self) -> watch::Receiver<i64> {
        self.readable.clone()
    }

    /// Waits until a read after this position has something to say, and tells whether it has; false
    /// after the time-out or when the log is closed.
    pub async fn wait_after(&self, after: EventPosition, timeout: Duration) -> bool {
        if after.epoch != self.epoch {
            return true;
        }
        let mut readable = self.readable.clone();
        let newer = readable.wait_for(|seq| *seq > after.seq);
        // Cancel-safe: waiting on a watch changes nothing.
        matches!(tokio::time::timeout(timeout, newer).await, Ok(Ok(_)))
    }

    /// Waits until everything up to this position can be read or is lost; false when the log is
    /// closed before.
    pub async fn settled(&self, position: EventPosition) -> bool {
        let mut readable = self.readable.clone();
        // Cancel-safe: waiting on a watch changes nothing.
        readable.wait_for(|seq| *seq >= position.seq).await.is_ok()
    }

    /// Blocks until everything published before is readable or lost.
    pub fn flush(&self) {
        self.queue.flush();
    }

    /// Refuses further events, writes those that wait, and joins the writer thread. Blocks for as
    /// long as that takes; a second call does nothing.
    ///
    /// # Errors
    /// [`EventLogError::Unwritten`], [`EventLogError::Storage`] or [`EventLogError::Panicked`] when
    /// the end was not clean. The log can be opened again in any case.
    pub fn close(&self) -> Result<(), EventLogError> {
        self.queue.close();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match writer.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(EventLogError::Panicked),
        };
        self.readers.close();
        result
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the event log did not end cleanly");
        }
    }
}
