//! The thread that writes groups of events and prunes the oldest.
//!
//! A group is one transaction: its chunks, the gaps in its numbers, some pruning, and the new head.
//! A group that cannot be written is lost, and its numbers become a gap with the next one that can:
//! the log is a view of what happened, so nobody waits for it or fails with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, mem,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::watch;

use crate::pace::Pace;

use super::{
    EventLogError, Limits,
    event::Event,
    file::{self, Head, RESERVE},
    queue::{Numbered, Queue},
    stream::{self, StreamMark},
};

/// A chunk is closed at so many events …
const CHUNK_EVENTS: usize = 1024;
/// … or so many bytes, because a read loads whole chunks.
const CHUNK_BYTES: usize = 256 * 1024;
/// How many times as long a flood gathers.
const FLOOD_LINGERS: u32 = 3;
/// What a chunk and each of its entries costs on disk beside its text.
const ROW_BYTES: usize = 64;
/// How many chunks a group prunes beyond what it adds itself.
const PRUNE_STEP: usize = 256;
/// A WAL above this is emptied even if that waits for a reader. Longer than the one that SQLite writes
/// over again by itself, because one that was cut has to be given its room on the disk again, and
/// whoever syncs meanwhile waits for that.
const MAX_WAL: u64 = 2 * file::CHECKPOINT_BYTES.cast_unsigned();

/// Everything the writer thread owns.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) head: Head,
    pub(super) limits: Limits,
    pub(super) linger: Duration,
    pub(super) queue: Arc<Queue>,
    pub(super) readable: watch::Sender<i64>,
    pub(super) wal: PathBuf,
    /// How many events were lost since the last group that was written.
    pub(super) failed: u64,
}

/// Releases those who flush, however the thread ends.
struct Leaving(Arc<Queue>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.writer_gone();
    }
}

impl Writer {
    /// Writes until the queue is closed and empty.
    ///
    /// # Errors
    /// When the last events could not be written.
    pub(super) fn run(mut self) -> Result<(), EventLogError> {
        let _leaving = Leaving(Arc::clone(&self.queue));
        let mut events = Vec::new();
        let mut linger = None;
        let mut last = self.head.high;
        while let Some(high) = self.queue.take(&mut events, linger) {
            // The first event after a quiet time is written at once; those that follow it closely
            // share the next group. A flood is written less often: nobody reads that fast, and a
            // group writes a page for everybody whom it mentions.
            let is_flood = events.len() >= CHUNK_EVENTS;
            let rest = self.linger * if is_flood { FLOOD_LINGERS } else { 1 };
            linger = Instant::now().checked_add(rest);
            last = high;
            self.write(&mut events, high);
            events.clear();
        }
        if self.failed > 0 || self.head.high != last {
            return Err(EventLogError::Unwritten {
                events: self.failed,
            });
        }
        // Giving the rest of the block back is what makes an end clean.
        self.connection
            .execute("UPDATE log SET reserved = high + 1", [])
            .map_err(EventLogError::Storage)?;
        Ok(())
    }

    fn write(&mut self, events: &mut Vec<Numbered>, high: i64) {
        let count = events.len() as u64;
        let lost = match self.commit(events, high) {
            Ok(head) => {
                self.head = head;
                self.readable.send_replace(head.high);
                if self.failed > 0 {
                    tracing::warn!(lost = self.failed, "the event log can be written again");
                    self.failed = 0;
                }
                0
            }
            Err(error) => {
                if self.failed == 0 {
                    tracing::error!(%error, "the event log cannot be written; events are lost");
                }
                self.failed += count;
                count
            }
        };
        if lost == 0
            && let Err(error) = self.maintain(high)
        {
            tracing::warn!(%error, "the event log's upkeep failed; it is tried again");
        }
        self.queue.settle(high, lost);
    }

    /// Writes one group, up to and with number `high`, and returns the head after it.
    fn commit(&mut self, events: &mut Vec<Numbered>, high: i64) -> rusqlite::Result<Head> {
        let limits = self.limits;
        let mut head = self.head;
        let steps = PRUNE_STEP + events.len();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut pace = Pace::new();
        let mut chunk = Chunk::default();
        let mut grown = BTreeSet::new();
        for Numbered { seq, event, mark } in events.drain(..) {
            pace.step();
            if !chunk.takes(&event, mark.as_ref()) {
                chunk.insert(&transaction, &mut head)?;
            }
            if mark.is_some() && !grown.contains(&event.about) {
                grown.insert(event.about.clone());
            }
            if seq > head.high + 1 {
                file::record_gap(&transaction, head.high + 1, seq - 1)?;
            }
            head.high = seq;
            chunk.add(seq, event, mark, &limits);
            if chunk.is_full(&limits) {
                chunk.insert(&transaction, &mut head)?;
            }
        }
        chunk.insert(&transaction, &mut head)?;
        if high > head.high {
            file::record_gap(&transaction, head.high + 1, high)?;
            head.high = high;
        }
        prune(&transaction, &mut head, &limits, steps)?;
        for about in &grown {
            stream::prune(&transaction, about, &limits, steps)?;
        }
        transaction
            .prepare_cached("UPDATE log SET high = ?1, pruned = ?2, events = ?3, bytes = ?4")?
            .execute(params![head.high, head.pruned, head.events, head.bytes])?;
        transaction.commit()?;
        Ok(head)
    }

    /// Reserves more numbers in time, and keeps the WAL small when readers hinder SQLite's own
    /// checkpoints.
    fn maintain(&mut self, high: i64) -> rusqlite::Result<()> {
        if high > self.head.reserved - RESERVE / 2 {
            let reserved = high + 1 + RESERVE;
            file::reserve(&self.connection, reserved)?;
            self.head.reserved = reserved;
            self.queue.extend(reserved);
        }
        if fs::metadata(&self.wal).is_ok_and(|wal| wal.len() > MAX_WAL) {
            file::checkpoint(&self.connection)?;
        }
        Ok(())
    }
}

/// Events that become one row.
#[derive(Debug, Default)]
struct Chunk {
    first: i64,
    last: i64,
    events: usize,
    body: Vec<u8>,
    /// Who is mentioned, and where in the body.
    places: BTreeMap<String, Vec<u8>>,
    /// The stream it belongs to, and where that stands after its last event.
    stream: Option<(String, StreamMark)>,
}

impl Chunk {
    /// Whether an event may go into this chunk: one chunk holds events of one stream.
    fn takes(&self, event: &Event, mark: Option<&StreamMark>) -> bool {
        let same = match (&self.stream, mark) {
            (Some((about, _)), Some(_)) => *about == event.about,
            (None, None) => true,
            _ => false,
        };
        self.events == 0 || same
    }

    fn add(&mut self, seq: i64, mut event: Event, mark: Option<StreamMark>, limits: &Limits) {
        self.stream = mark.map(|mark| (event.about.clone(), mark));
        if self.events == 0 {
            self.first = seq;
        }
        self.last = seq;
        self.events += 1;
        let place = u32::try_from(self.body.len()).expect("a chunk is small");
        event.encode(seq, limits.max_event_bytes, &mut self.body);
        let places = self.places.entry(event.about).or_default();
        places.extend_from_slice(&place.to_le_bytes());
    }

    /// Chunks are small beside the limits too, because they are pruned whole.
    fn is_full(&self, limits: &Limits) -> bool {
        self.events >= CHUNK_EVENTS.min(limits.max_events / 8)
            || self.body.len() >= CHUNK_BYTES.min(limits.max_bytes / 8)
    }

    fn insert(&mut self, connection: &Connection, head: &mut Head) -> rusqlite::Result<()> {
        if self.events == 0 {
            return Ok(());
        }
        let abouts: Vec<&String> = self.places.keys().collect();
        let abouts = serde_json::to_string(&abouts).expect("texts encode as JSON");
        let size = self.body.len()
            + 2 * abouts.len()
            + size_of::<u32>() * self.events
            + ROW_BYTES * (1 + self.places.len());
        let events = i64::try_from(self.events).unwrap_or(i64::MAX);
        let bytes = i64::try_from(size).unwrap_or(i64::MAX);
        connection
            .prepare_cached("INSERT INTO chunk VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute(params![
                self.first,
                self.last,
                events,
                bytes,
                abouts,
                self.body,
                self.stream
                    .as_ref()
                    .map_or(stream::OWN, |(about, _)| about.as_str())
            ])?;
        let mut mention =
            connection.prepare_cached("INSERT INTO chunk_about VALUES (?1, ?2, ?3)")?;
        for (about, places) in mem::take(&mut self.places) {
            mention.execute(params![about, self.first, places])?;
        }
        if let Some((about, mark)) = self.stream.take() {
            stream::grow(connection, &about, &mark, events, bytes)?;
        } else {
            head.events += events;
            head.bytes += bytes;
        }
        self.events = 0;
        self.body.clear();
        Ok(())
    }
}

/// Drops the oldest chunks of the hive's own events while a limit is passed, at most `steps`.
fn prune(
    connection: &Connection,
    head: &mut Head,
    limits: &Limits,
    steps: usize,
) -> rusqlite::Result<()> {
    let before = head.pruned;
    let max_events = i64::try_from(limits.max_events).unwrap_or(i64::MAX);
    let max_bytes = i64::try_from(limits.max_bytes).unwrap_or(i64::MAX);
    for _ in 0..steps {
        if head.events <= max_events && head.bytes <= max_bytes {
            break;
        }
        let Some(gone) = stream::take_oldest(connection, stream::OWN)? else {
            break;
        };
        head.pruned = gone.last;
        head.events -= gone.events;
        head.bytes -= gone.bytes;
    }
    if head.pruned > before {
        connection
            .prepare_cached("DELETE FROM gap WHERE first <= ?1 AND last <= ?1")?
            .execute([head.pruned])?;
    }
    Ok(())
}
