//! Streams: the events that one agent's harness posts, with a budget of their own.
//!
//! They share the log's numbers, so that one reader sees everything in one order; but their chunks
//! hold nothing else and are pruned by their own limits. However much an agent posts, it pushes
//! out only what it posted itself.
//!
//! A stream remembers, in the same transaction as its events, up to which of the poster's own
//! numbers it has them: a post that is repeated after a crash of either side is recognised.

use std::{collections::BTreeMap, sync::Arc};

use rusqlite::{Connection, OptionalExtension, params};

use super::Limits;

/// The stream of the hive's own events.
pub(super) const OWN: &str = "";

/// Where a stream stands, in its poster's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMark {
    /// Which life of the poster numbered its events.
    pub epoch: Arc<str>,
    /// The number that comes next in it.
    pub next: u64,
}

/// Every stream's mark.
pub(super) fn marks(connection: &Connection) -> rusqlite::Result<BTreeMap<String, StreamMark>> {
    let mut statement = connection.prepare("SELECT about, epoch, next FROM stream")?;
    let rows = statement.query_map([], |row| {
        let epoch: String = row.get(1)?;
        let next = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
        Ok((
            row.get(0)?,
            StreamMark {
                epoch: epoch.into(),
                next,
            },
        ))
    })?;
    rows.collect()
}

/// Up to which number events about `about`, or about anybody, were pruned from streams.
pub(super) fn pruned(connection: &Connection, about: Option<&str>) -> rusqlite::Result<i64> {
    let pruned: Option<i64> = match about {
        Some(about) => connection
            .prepare_cached("SELECT pruned FROM stream WHERE about = ?1")?
            .query_row([about], |row| row.get(0))
            .optional()?,
        None => connection
            .prepare_cached("SELECT max(pruned) FROM stream")?
            .query_row([], |row| row.get(0))?,
    };
    Ok(pruned.unwrap_or(0))
}

/// Notes a chunk that was added to a stream.
pub(super) fn grow(
    connection: &Connection,
    about: &str,
    mark: &StreamMark,
    events: i64,
    bytes: i64,
) -> rusqlite::Result<()> {
    let next = i64::try_from(mark.next).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT INTO stream VALUES (?1, 0, ?2, ?3, ?4, ?5) ON CONFLICT (about) DO UPDATE SET
             events = events + ?2, bytes = bytes + ?3, epoch = ?4, next = ?5",
        )?
        .execute(params![about, events, bytes, &*mark.epoch, next])?;
    Ok(())
}

/// Brings a stream that grew, and all streams together, back under their limits, in at most
/// `steps` chunks.
pub(super) fn prune(
    connection: &Connection,
    about: &str,
    limits: &Limits,
    steps: usize,
) -> rusqlite::Result<()> {
    let (max_events, max_bytes) = (whole(limits.stream_events), whole(limits.stream_bytes));
    for _ in 0..steps {
        let (events, bytes): (i64, i64) = connection
            .prepare_cached("SELECT events, bytes FROM stream WHERE about = ?1")?
            .query_row([about], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if events <= max_events && bytes <= max_bytes {
            break;
        }
        drop_oldest(connection, about)?;
    }
    for _ in 0..steps {
        let total: i64 = connection
            .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM stream")?
            .query_row([], |row| row.get(0))?;
        if total <= whole(limits.streams_bytes) {
            break;
        }
        // Whoever posted most gives way.
        let largest: String = connection
            .prepare_cached("SELECT about FROM stream ORDER BY bytes DESC LIMIT 1")?
            .query_row([], |row| row.get(0))?;
        drop_oldest(connection, &largest)?;
    }
    Ok(())
}

fn drop_oldest(connection: &Connection, about: &str) -> rusqlite::Result<()> {
    let Some(gone) = take_oldest(connection, about)? else {
        // The counts are wrong, which no reader minds; without chunks there is nothing to count.
        connection
            .prepare_cached("UPDATE stream SET events = 0, bytes = 0 WHERE about = ?1")?
            .execute([about])?;
        return Ok(());
    };
    connection
        .prepare_cached(
            "UPDATE stream SET pruned = ?2, events = events - ?3, bytes = bytes - ?4
             WHERE about = ?1",
        )?
        .execute(params![about, gone.last, gone.events, gone.bytes])?;
    Ok(())
}

/// A chunk that was taken out.
pub(super) struct Gone {
    pub(super) last: i64,
    pub(super) events: i64,
    pub(super) bytes: i64,
}

/// Takes the oldest chunk of a stream out, if there is one.
pub(super) fn take_oldest(connection: &Connection, stream: &str) -> rusqlite::Result<Option<Gone>> {
    let oldest = connection
        .prepare_cached(
            "SELECT first, last, events, bytes, abouts FROM chunk
             WHERE stream = ?1 ORDER BY first LIMIT 1",
        )?
        .query_row([stream], |row| {
            let numbers: [i64; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((numbers, row.get::<_, String>(4)?))
        })
        .optional()?;
    let Some(([first, last, events, bytes], abouts)) = oldest else {
        return Ok(None);
    };
    connection
        .prepare_cached(
            "DELETE FROM chunk_about
             WHERE first = ?1 AND about IN (SELECT value FROM json_each(?2))",
        )?
        .execute(params![first, abouts])?;
    connection
        .prepare_cached("DELETE FROM chunk WHERE first = ?1")?
        .execute([first])?;
    Ok(Some(Gone {
        last,
        events,
        bytes,
    }))
}

fn whole(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
