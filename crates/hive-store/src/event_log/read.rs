//! Pages of the log, read from its own connections while the writer goes on.
//!
//! A page is one snapshot: its events, its gaps and its end belong together. `next` is where the
//! search ended, not the last match, so a reader that follows one agent moves on past the events
//! of others and is not told of a gap when those are pruned.

use hive_wire::{
    Timestamp,
    host::{EventPage, EventPosition, EventRow},
};
use rusqlite::{Connection, OptionalExtension, Params, Statement, params, types::ValueRef};
use serde_json::{Value, json};

use super::{
    Earlier, MAX_PAGE_BYTES, MAX_PAGE_EVENTS,
    event::{Record, TOO_LARGE, encoded_len},
    stream,
};

/// What a page's own frame takes of its bytes.
const FRAME_BYTES: usize = 256;

const OLDEST_FIRST: &str = "SELECT body, NULL FROM chunk WHERE first >= ?1 ORDER BY first";
const OLDEST_FIRST_ABOUT: &str = "
    SELECT c.body, a.places FROM chunk_about AS a CROSS JOIN chunk AS c ON c.first = a.first
    WHERE a.about = ?2 AND a.first >= ?1 ORDER BY a.first";
const NEWEST_FIRST: &str = "SELECT body, NULL FROM chunk ORDER BY first DESC";
const NEWEST_FIRST_ABOUT: &str = "
    SELECT c.body, a.places FROM chunk_about AS a CROSS JOIN chunk AS c ON c.first = a.first
    WHERE a.about = ?1 ORDER BY a.first DESC";
const EARLIER: &str = "SELECT body, NULL FROM chunk WHERE first < ?1 ORDER BY first DESC";
const EARLIER_ABOUT: &str = "
    SELECT c.body, a.places FROM chunk_about AS a CROSS JOIN chunk AS c ON c.first = a.first
    WHERE a.about = ?2 AND a.first < ?1 ORDER BY a.first DESC";

/// Reads a page of the past; see [`super::EventLog::read_before`].
pub(super) fn page_before(
    connection: &mut Connection,
    before: i64,
    limit: usize,
    about: Option<&str>,
) -> rusqlite::Result<Earlier> {
    let snapshot = connection.transaction()?;
    let mut found = Found::new(limit, about);
    found.before(&snapshot, before)?;
    Ok(Earlier {
        events: found.rows,
        more: found.full,
    })
}

/// Reads a page; see [`super::EventLog::read`].
pub(super) fn page(
    connection: &mut Connection,
    epoch: i64,
    after: Option<EventPosition>,
    limit: usize,
    about: Option<&str>,
) -> rusqlite::Result<EventPage> {
    let snapshot = connection.transaction()?;
    let (high, pruned): (i64, i64) = snapshot
        .prepare_cached("SELECT high, pruned FROM log")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let pruned = pruned.max(stream::pruned(&snapshot, about)?);
    let mut found = Found::new(limit, about);
    let (begin, end, reset) = match after {
        None => {
            found.newest(&snapshot)?;
            let begin = match found.rows.first() {
                Some(oldest) if found.full => oldest.seq - 1,
                _ => pruned,
            };
            (begin, high, false)
        }
        Some(position) => {
            // A number that was never given out here belongs to some other log.
            let known = position.epoch == epoch && position.seq <= high;
            let begin = if known { position.seq.max(0) } else { 0 };
            found.after(&snapshot, begin)?;
            let end = match found.rows.last() {
                Some(newest) if found.full => newest.seq,
                _ => high,
            };
            (begin, end, !known)
        }
    };
    let gap = reset || begin < pruned || found.damaged || lost_within(&snapshot, begin, end)?;
    Ok(EventPage {
        events: found.rows,
        next: EventPosition { epoch, seq: end },
        gap,
    })
}

/// Whether a number above `begin` and up to `end` was lost.
fn lost_within(connection: &Connection, begin: i64, end: i64) -> rusqlite::Result<bool> {
    // Gaps do not overlap, so the one that begins last also ends last.
    let last: Option<i64> = connection
        .prepare_cached("SELECT last FROM gap WHERE first <= ?1 ORDER BY first DESC LIMIT 1")?
        .query_row([end], |row| row.get(0))
        .optional()?;
    Ok(last.is_some_and(|last| last > begin))
}

/// Which way a search goes.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// From the first event after this number.
    After(i64),
    NewestFirst,
    /// From the last event before this number, backwards.
    Before(i64),
}

/// The events of a page as they are found.
struct Found<'a> {
    about: Option<&'a str>,
    limit: usize,
    rows: Vec<EventRow>,
    bytes: usize,
    /// No further event has room.
    full: bool,
    /// Some text could not be read back.
    damaged: bool,
}

impl<'a> Found<'a> {
    fn new(limit: usize, about: Option<&'a str>) -> Self {
        Self {
            about,
            limit: limit.clamp(1, MAX_PAGE_EVENTS),
            rows: Vec::new(),
            bytes: FRAME_BYTES,
            full: false,
            damaged: false,
        }
    }

    /// Finds the first events after number `begin`, oldest first.
    fn after(&mut self, connection: &Connection, begin: i64) -> rusqlite::Result<()> {
        // The chunk that holds the next number may have begun before it.
        let first: i64 = connection
            .prepare_cached("SELECT coalesce(max(first), 0) FROM chunk WHERE first <= ?1")?
            .query_row([begin.saturating_add(1)], |row| row.get(0))?;
        let from = Order::After(begin);
        if let Some(about) = self.about {
            let mut chunks = connection.prepare_cached(OLDEST_FIRST_ABOUT)?;
            self.search(&mut chunks, params![first, about], from)
        } else {
            let mut chunks = connection.prepare_cached(OLDEST_FIRST)?;
            self.search(&mut chunks, params![first], from)
        }
    }

    /// Finds the last events, and leaves them oldest first.
    fn newest(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(about) = self.about {
            let mut chunks = connection.prepare_cached(NEWEST_FIRST_ABOUT)?;
            self.search(&mut chunks, params![about], Order::NewestFirst)?;
        } else {
            let mut chunks = connection.prepare_cached(NEWEST_FIRST)?;
            self.search(&mut chunks, params![], Order::NewestFirst)?;
        }
        self.rows.reverse();
        Ok(())
    }

    /// Finds the last events before number `end`, and leaves them oldest first.
    fn before(&mut self, connection: &Connection, end: i64) -> rusqlite::Result<()> {
        let from = Order::Before(end);
        if let Some(about) = self.about {
            let mut chunks = connection.prepare_cached(EARLIER_ABOUT)?;
            self.search(&mut chunks, params![end, about], from)?;
        } else {
            let mut chunks = connection.prepare_cached(EARLIER)?;
            self.search(&mut chunks, params![end], from)?;
        }
        self.rows.reverse();
        Ok(())
    }

    /// Takes events from chunk after chunk until the page is full.
    fn search(
        &mut self,
        chunks: &mut Statement<'_>,
        params: impl Params,
        order: Order,
    ) -> rusqlite::Result<()> {
        let mut chunks = chunks.query(params)?;
        while !self.full
            && let Some(chunk) = chunks.next()?
        {
            let ValueRef::Blob(body) = chunk.get_ref(0)? else {
                self.damaged = true;
                continue;
            };
            let records = match chunk.get_ref(1)? {
                ValueRef::Blob(places) => self.records_at(body, places),
                _ => self.records(body, order),
            };
            match order {
                Order::After(begin) => {
                    let later = records.iter().filter(|record| record.0 > begin);
                    self.add_all(later);
                }
                Order::NewestFirst => self.add_all(records.iter().rev()),
                Order::Before(end) => {
                    let earlier = records.iter().filter(|record| record.0 < end);
                    self.add_all(earlier.rev());
                }
            }
        }
        Ok(())
    }

    /// The records of a chunk, as far as the page can need them.
    fn records<'b>(&mut self, body: &'b [u8], order: Order) -> Vec<Record<'b>> {
        let mut records = Vec::new();
        for record in serde_json::Deserializer::from_slice(body).into_iter::<Record<'b>>() {
            match (record, order) {
                (Ok(record), Order::After(begin)) if record.0 <= begin => {}
                (Ok(record), _) => records.push(record),
                (Err(_), _) => self.damaged = true,
            }
            if matches!(order, Order::After(_)) && records.len() >= self.limit {
                break;
            }
        }
        records
    }

    /// The records that begin at these places of a chunk.
    fn records_at<'b>(&mut self, body: &'b [u8], places: &[u8]) -> Vec<Record<'b>> {
        let mut records = Vec::new();
        for place in places.as_chunks::<4>().0 {
            let place = u32::from_le_bytes(*place) as usize;
            let text = body.get(place..).unwrap_or_default();
            match serde_json::Deserializer::from_slice(text)
                .into_iter()
                .next()
            {
                Some(Ok(record)) => records.push(record),
                _ => self.damaged = true,
            }
        }
        records
    }

    fn add_all<'r, 'b: 'r>(&mut self, records: impl Iterator<Item = &'r Record<'b>>) {
        for record in records {
            self.add(record);
            if self.full {
                break;
            }
        }
    }

    /// Adds an event unless the page has no room for it.
    fn add(&mut self, Record(seq, at, about, kind, data): &Record<'_>) {
        let mut row = EventRow {
            seq: *seq,
            at: Timestamp::from_millis(*at),
            about: about.to_string(),
            kind: kind.to_string(),
            // Raw data may nest deeper than a value may.
            data: serde_json::from_str(data.get()).unwrap_or(Value::Null),
        };
        let mut bytes = encoded_len(&row) + 1;
        if bytes > MAX_PAGE_BYTES - FRAME_BYTES {
            // Raw data can grow when it is written anew: `1e15` becomes a number of 18 digits.
            row.data = json!({"kind": row.kind, "bytes": bytes});
            row.kind = TOO_LARGE.to_owned();
            bytes = encoded_len(&row) + 1;
        }
        if self.bytes + bytes > MAX_PAGE_BYTES {
            self.full = true;
            return;
        }
        self.bytes += bytes;
        self.rows.push(row);
        self.full = self.rows.len() == self.limit;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::file, *};

    #[test]
    fn no_read_scans_the_log_or_sorts() {
        let dir = tempfile::tempdir().unwrap();
        let file = file::open(&dir.path().join("events.db"), Duration::ZERO).unwrap();
        let plan = |sql: &str| -> Vec<String> {
            let explain = format!("EXPLAIN QUERY PLAN {sql}");
            let mut statement = file.connection.prepare(&explain).unwrap();
            let nulls = vec![rusqlite::types::Null; statement.parameter_count()];
            let rows = statement.query_map(rusqlite::params_from_iter(nulls), |row| row.get(3));
            rows.unwrap().map(Result::unwrap).collect()
        };
        for sql in [OLDEST_FIRST_ABOUT, NEWEST_FIRST_ABOUT, EARLIER_ABOUT] {
            let plan = plan(sql);
            assert!(plan[0].contains("USING PRIMARY KEY (about=?"), "{plan:?}");
            assert!(plan[1].contains("USING INTEGER PRIMARY KEY"), "{plan:?}");
            assert_eq!(plan.len(), 2, "{plan:?}");
        }
        assert_eq!(plan(OLDEST_FIRST).len(), 1);
        assert_eq!(plan(EARLIER).len(), 1);
        assert_eq!(plan(NEWEST_FIRST), ["SCAN chunk"], "in order of its key");
    }
}
