//! The log's file: its shape, opening it, and putting a damaged one aside.
//!
//! Events lie in chunks: what one group wrote, cut at a number of events and of bytes. A quiet hive
//! writes chunks of one; a flood costs a few rows instead of thousands, and pruning drops whole
//! chunks. A chunk holds the hive's own events or those of one stream, never both. `chunk_about` says which chunks mention whom, and where; `gap` holds the ranges of lost
//! numbers.
//!
//! Numbers are reserved in blocks, with a sync, before they are given out. An unclean end loses at
//! most the rest of a block: the next start continues behind it and records the hole as a gap, so
//! no number is ever used twice, not even after a power failure took the end of the WAL.
//!
//! Freed pages are reused by later chunks, so the file stops growing at about the byte limit plus
//! one group, without the cost of vacuuming.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};

use super::{
    EventLogError,
    aside::{put_aside, with_suffix},
};

/// How many numbers are reserved at a time.
pub(super) const RESERVE: i64 = 1 << 20;

/// Of new files; an older one keeps its own. A flood's chunks take many pages, and each costs beside
/// what it holds.
const PAGE_SIZE: i64 = 16384;

/// With so much in the WAL it is moved into the file. A page that is written again and again
/// meanwhile, as those that say who is mentioned are, is moved once; and each time the disk is
/// flushed, for which the broker has to wait too.
pub(super) const CHECKPOINT_BYTES: i64 = 48 << 20;

/// What a flood writes in one transaction: else pages leave the cache before they are full.
const CACHE_KIB: i64 = 8192;

/// "hivE": a file with another id is none of ours.
const APPLICATION_ID: i64 = 0x6869_7645;
const FORMAT: i64 = 2;

const SCHEMA: &str = "
    CREATE TABLE log (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        epoch INTEGER NOT NULL, reserved INTEGER NOT NULL, high INTEGER NOT NULL,
        pruned INTEGER NOT NULL, events INTEGER NOT NULL, bytes INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE chunk (
        first INTEGER PRIMARY KEY, last INTEGER NOT NULL, events INTEGER NOT NULL,
        bytes INTEGER NOT NULL, abouts TEXT NOT NULL, body BLOB NOT NULL,
        stream TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE TABLE chunk_about (
        about TEXT NOT NULL, first INTEGER NOT NULL, places BLOB NOT NULL,
        PRIMARY KEY (about, first)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE gap (first INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
    CREATE INDEX chunk_stream ON chunk (stream, first);
    CREATE TABLE stream (
        about TEXT PRIMARY KEY, pruned INTEGER NOT NULL, events INTEGER NOT NULL,
        bytes INTEGER NOT NULL, epoch TEXT NOT NULL, next INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// What format 1 lacks.
const UPGRADE: &str = "
    ALTER TABLE chunk ADD COLUMN stream TEXT NOT NULL DEFAULT '';
    CREATE INDEX chunk_stream ON chunk (stream, first);
    CREATE TABLE stream (
        about TEXT PRIMARY KEY, pruned INTEGER NOT NULL, events INTEGER NOT NULL,
        bytes INTEGER NOT NULL, epoch TEXT NOT NULL, next INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 2;
";

/// How a log began this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// There was no file; a new epoch began.
    Created,
    /// The log goes on after a clean end.
    Resumed,
    /// The log goes on after an unclean end: its last events may be lost, which readers see as a
    /// gap.
    Recovered,
    /// The file was damaged or not an event log. It was put aside and a new epoch began.
    Replaced {
        /// Where the old file lies now.
        aside: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
}

/// What the file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) epoch: i64,
    /// Numbers from here on were never given out.
    pub(super) reserved: i64,
    /// Everything up to here is in a chunk, in a gap, or pruned.
    pub(super) high: i64,
    /// Everything of the hive's own up to here is pruned.
    pub(super) pruned: i64,
    /// How many of the hive's own events the chunks hold.
    pub(super) events: i64,
    /// How many bytes those take, about.
    pub(super) bytes: i64,
}

/// An open file, ready for its writer.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) connection: Connection,
    pub(super) head: Head,
    pub(super) opening: Opening,
}

enum Trouble {
    /// The content is no log; a new file helps.
    Damaged(String),
    /// The place does not work; a new file would fail too.
    Place(EventLogError),
}

impl Trouble {
    fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Place(EventLogError::open(path, error)),
        }
    }
}

/// Opens the file at `path` and reserves a block of numbers, or begins a new one.
pub(super) fn open(path: &Path, busy: Duration) -> Result<LogFile, EventLogError> {
    let reason = match try_open(path, busy) {
        Ok(file) => return Ok(file),
        Err(Trouble::Place(error)) => return Err(error),
        Err(Trouble::Damaged(reason)) => reason,
    };
    let aside = put_aside(path).map_err(|error| EventLogError::open(path, error))?;
    tracing::error!(
        path = %path.display(), aside = %aside.display(), reason,
        "the event log was damaged; it is put aside and a new one begins"
    );
    match try_open(path, busy) {
        Ok(file) => Ok(LogFile {
            opening: Opening::Replaced { aside, reason },
            ..file
        }),
        Err(Trouble::Place(error)) => Err(error),
        Err(Trouble::Damaged(reason)) => Err(EventLogError::open(path, io::Error::other(reason))),
    }
}

/// Reserves numbers up to, without, `reserved`; on return that survives a power failure.
pub(super) fn reserve(connection: &Connection, reserved: i64) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    let done = connection.execute("UPDATE log SET reserved = ?1", [reserved]);
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    done?;
    checkpoint(connection)
}

/// Moves the WAL into the file, as far as readers let it, and empties it.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Has SQLite do so by itself, seldom. It counts in pages, whose size an older file chose.
fn checkpoint_seldom(connection: &Connection) -> rusqlite::Result<()> {
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_BYTES / page.max(1))
}

/// The path of the file's WAL.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    with_suffix(path, "-wal")
}

fn try_open(path: &Path, busy: Duration) -> Result<LogFile, Trouble> {
    let place = |error: io::Error| Trouble::Place(EventLogError::open(path, error));
    // Events quote what agents say: the file is its owner's alone. SQLite gives the WAL the same
    // mode.
    let length = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .and_then(|file| file.metadata())
        .map_err(place)?
        .len();
    let sqlite = |error| Trouble::from_sqlite(path, error);
    let mut connection = connect(path, busy).map_err(sqlite)?;
    if length > 0 {
        check(&connection)
            .map_err(sqlite)?
            .map_err(Trouble::Damaged)?;
    }
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(sqlite)?;
    if mode != "wal" {
        return Err(place(io::Error::other("its file system cannot hold a WAL")));
    }
    if length == 0 {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| place(io::Error::other(format!("no random numbers: {error}"))))?;
        // Positive, so that it is never taken for "none".
        let epoch = (i64::from_le_bytes(random) & i64::MAX).max(1);
        create(&mut connection, epoch).map_err(sqlite)?;
    } else {
        upgrade(&mut connection).map_err(sqlite)?;
    }
    checkpoint_seldom(&connection).map_err(sqlite)?;
    let mut head = load(&connection).map_err(sqlite)?;
    if !is_plausible(&head) {
        return Err(Trouble::Damaged("its numbers contradict each other".into()));
    }
    let opening = match (length, head.reserved - 1 > head.high) {
        (0, _) => Opening::Created,
        (_, false) => Opening::Resumed,
        (_, true) => Opening::Recovered,
    };
    begin(&mut connection, &mut head).map_err(sqlite)?;
    Ok(LogFile {
        connection,
        head,
        opening,
    })
}

/// A connection to a file that exists.
pub(super) fn connect(path: &Path, busy: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Whether the file is a whole log of this format. It is small by its limits, so reading all of
/// its structure at every start is cheap.
fn check(connection: &Connection) -> rusqlite::Result<Result<(), String>> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if pragma("application_id")? != APPLICATION_ID {
        return Ok(Err("it is not an event log".into()));
    }
    let format = pragma("user_version")?;
    if !(1..=FORMAT).contains(&format) {
        return Ok(Err(format!("it has format {format}, this build {FORMAT}")));
    }
    let found: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?;
    Ok(if found == "ok" { Ok(()) } else { Err(found) })
}

fn create(connection: &mut Connection, epoch: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute("INSERT INTO log VALUES (1, ?1, 1, 0, 0, 0, 0)", [epoch])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

/// Brings a log of an earlier format to this one.
fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if format == FORMAT {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(UPGRADE)?;
    transaction.commit()
}

fn load(connection: &Connection) -> rusqlite::Result<Head> {
    connection.query_row(
        "SELECT epoch, reserved, high, pruned, events, bytes FROM log",
        [],
        |row| {
            Ok(Head {
                epoch: row.get(0)?,
                reserved: row.get(1)?,
                high: row.get(2)?,
                pruned: row.get(3)?,
                events: row.get(4)?,
                bytes: row.get(5)?,
            })
        },
    )
}

fn is_plausible(head: &Head) -> bool {
    head.epoch > 0
        && 0 <= head.pruned
        && head.pruned <= head.high
        && head.high < head.reserved
        && head.reserved < i64::MAX / 2
        && head.events >= 0
        && head.bytes >= 0
}

/// Turns what an unclean end left of the last block into a gap, and reserves the next block.
fn begin(connection: &mut Connection, head: &mut Head) -> rusqlite::Result<()> {
    let last_used = head.reserved - 1;
    if last_used > head.high {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        record_gap(&transaction, head.high + 1, last_used)?;
        transaction.execute("UPDATE log SET high = ?1", [last_used])?;
        transaction.commit()?;
        head.high = last_used;
    }
    head.reserved = head.high + 1 + RESERVE;
    reserve(connection, head.reserved)
}

/// Records that the numbers from `first` to `last` hold no event. Neighbours become one range, so
/// there are never more gaps than chunks, plus one.
pub(super) fn record_gap(connection: &Connection, first: i64, last: i64) -> rusqlite::Result<()> {
    let grown = connection
        .prepare_cached(
            "UPDATE gap SET last = ?2 WHERE first = (SELECT max(first) FROM gap) AND last = ?1 - 1",
        )?
        .execute(params![first, last])?;
    if grown == 0 {
        connection
            .prepare_cached("INSERT INTO gap VALUES (?1, ?2)")?
            .execute(params![first, last])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wal_grows_as_long_whatever_the_pages_of_the_file() {
        for page in [4096, PAGE_SIZE] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("events.db");
            let mut old = Connection::open(&path).unwrap();
            old.pragma_update(None, "page_size", page).unwrap();
            create(&mut old, 1).unwrap();
            drop(old);

            let file = open(&path, Duration::ZERO).unwrap();
            assert_eq!(file.opening, Opening::Resumed);
            let [pages, bytes] = ["wal_autocheckpoint", "page_size"].map(|name| {
                let value = file
                    .connection
                    .pragma_query_value(None, name, |row| row.get(0));
                value.unwrap_or(0_i64)
            });
            assert_eq!((bytes, pages * bytes), (page, CHECKPOINT_BYTES));
        }
    }
}
