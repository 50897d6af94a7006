//! The redo journal: a group is durable once what it changed is written and synced here, in one
//! piece. SQLite commits behind, when nobody waits for it, and a start brings in what it lacks.
//!
//! The file is laid out beforehand and filled from its beginning, record by record. Every commit
//! that SQLite itself has synced makes all of it obsolete: the next record starts over. A record
//! says to which round it belongs, in a number that nobody outside can guess, because behind the
//! last record lies what earlier ones held, and that is what agents wrote.
//!
//! Groups are numbered, those too that SQLite synced itself, and the database knows the last one
//! that is in it. So a journal that does not fit the database beside it is noticed.

mod direct;
mod statement;

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::{
    StoreError,
    open::{io_error, not_ours},
};
use direct::Direct;
pub(super) use statement::{Statement, Value};

const MAGIC: &[u8; 8] = b"hiveredo";
/// The file's header, in a block of its own: magic, the id of the hive, checksum.
const HEADER: u64 = 4096;
const ID: usize = 32;
const HEADER_BYTES: usize = 8 + ID + 4;
/// Round, number, length and checksum of a record.
const HEAD: usize = 24;
/// Records begin where sectors do, so that writing one touches no sector of another.
const SECTOR: usize = 512;
/// What a buffer that was large may keep.
const KEPT_BYTES: usize = 1 << 20;

/// A group as the journal has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) number: i64,
    changes: Vec<u8>,
}

impl Record {
    /// Makes its changes once more.
    ///
    /// # Errors
    /// When it makes no sense, or not to this database.
    pub(super) fn replay(&self, conn: &Connection, journal: &Path) -> Result<(), StoreError> {
        let mut rest = &self.changes[..];
        while !rest.is_empty() {
            let Some((statement, values)) = Statement::decode(&mut rest) else {
                return Err(damaged(
                    journal,
                    format!("record {} makes no sense", self.number),
                ));
            };
            statement.run(conn, &values).map_err(|error| {
                if super::is_disk_full(&error) {
                    return StoreError::DiskFull;
                }
                let detail = format!("record {} does not fit the database: {error}", self.number);
                damaged(journal, detail)
            })?;
        }
        Ok(())
    }
}

/// What the open group changed, as far as the journal can carry it.
#[derive(Debug)]
pub(super) struct Changes {
    /// Room for a record's head, then the statements.
    bytes: Vec<u8>,
    /// Where the current operation begins, and how many rows it changed by these statements.
    operation: usize,
    rows: u64,
    /// Whether this is all that the group changed.
    is_all: bool,
    limit: usize,
}

impl Changes {
    fn new(limit: usize) -> Self {
        Self {
            bytes: vec![0; HEAD],
            operation: HEAD,
            rows: 0,
            is_all: true,
            limit,
        }
    }

    pub(super) fn add(&mut self, statement: Statement, values: &[Value<'_>], rows: usize) {
        self.rows += rows as u64;
        if self.is_all {
            statement.encode(values, &mut self.bytes);
            self.is_all = self.bytes.len() <= self.limit;
        }
    }

    pub(super) fn begin_operation(&mut self) {
        self.operation = self.bytes.len();
        self.rows = 0;
    }

    /// The operation stands, and changed so many rows.
    pub(super) fn keep_operation(&mut self, rows: u64) {
        self.is_all &= rows == self.rows;
    }

    pub(super) fn undo_operation(&mut self) {
        self.bytes.truncate(self.operation);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.bytes.resize(HEAD, 0);
        self.is_all = true;
    }

    /// Whether the group changed nothing that lasts.
    pub(super) fn are_none(&self) -> bool {
        self.is_all && self.bytes.len() == HEAD
    }
}

/// The journal of one open database.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// None when there was no room for one: then SQLite syncs every group itself.
    file: Option<Laid>,
    /// The number of the last group that is durable.
    number: i64,
    /// How many groups SQLite has not committed yet.
    behind: u32,
    pub(super) changes: Changes,
}

#[derive(Debug)]
struct Laid {
    file: File,
    /// The way past the page cache, where the file system has one.
    direct: Option<Direct>,
    bytes: u64,
    /// Where the next record goes.
    at: u64,
    /// What the records since the journal started over have in common.
    round: u64,
}

impl Journal {
    /// The records in the journal of this hive, oldest first; it is left as it is.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or belongs to another hive.
    pub(super) fn read(path: &Path, hive: &str) -> Result<Vec<Record>, StoreError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|source| io_error(path, source))?,
        };
        let mut header = [0; HEADER_BYTES];
        let whole = read_up_to(&file, &mut header, 0).map_err(|source| io_error(path, source))?;
        if header == [0; HEADER_BYTES] {
            // The header is written last: it was never laid out.
            return Ok(Vec::new());
        }
        if !whole || header != header_of(hive) {
            let is_another = header == header_of(&String::from_utf8_lossy(&header[8..8 + ID]));
            return Err(if is_another {
                not_ours(path, "it is the journal of another hive".to_owned())
            } else {
                damaged(path, "its header is not intact".to_owned())
            });
        }
        records(&file).map_err(|source| io_error(path, source))
    }

    /// Lays the journal out anew for a database that has everything up to group `number`.
    ///
    /// # Errors
    /// When the file cannot be written, but for want of space.
    pub(super) fn start(
        path: &Path,
        hive: &str,
        bytes: u64,
        number: i64,
    ) -> Result<Self, StoreError> {
        let file = match lay_out(path, hive, bytes) {
            // It only makes groups faster.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => None,
            other => other.map_err(|source| io_error(path, source))?,
        };
        let limit = file.as_ref().map_or(HEAD, |laid| {
            usize::try_from(laid.bytes - HEADER).unwrap_or(usize::MAX)
        });
        Ok(Self {
            path: path.to_path_buf(),
            file,
            number,
            behind: 0,
            changes: Changes::new(limit),
        })
    }

    pub(super) fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// The number of the last group that is durable.
    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// How many groups are durable here and not committed by SQLite yet.
    pub(super) fn behind(&self) -> u32 {
        self.behind
    }

    /// Writes and syncs what the group changed. False, and nothing is done, when the journal cannot
    /// carry it or has no room left.
    ///
    /// # Errors
    /// When it is not known to be on disk.
    pub(super) fn append(&mut self) -> Result<bool, StoreError> {
        let Some(laid) = self.file.as_mut().filter(|_| self.changes.is_all) else {
            return Ok(false);
        };
        let record = &mut self.changes.bytes;
        let length = record.len();
        let padded = length.next_multiple_of(SECTOR);
        if laid.at + padded as u64 > laid.bytes {
            return Ok(false);
        }
        record.resize(padded, 0);
        seal(&mut record[..length], laid.round, self.number + 1);
        let written = match &mut laid.direct {
            Some(direct) => direct.write_all_at(record, laid.at),
            None => laid.file.write_all_at(record, laid.at),
        };
        if let Err(error) = written {
            return Err(match error.kind() {
                io::ErrorKind::StorageFull => StoreError::DiskFull,
                _ => io_error(&self.path, error),
            });
        }
        crate::failpoint!("store::before_redo_sync");
        // Written and not synced, it may be there after a crash or not: there is no way on.
        let synced = laid.file.sync_data();
        synced.map_err(|source| io_error(&self.path, source))?;
        laid.at += padded as u64;
        self.number += 1;
        self.behind += 1;
        Ok(true)
    }

    /// SQLite has committed everything up to group `number`. When it has synced that too, nothing of
    /// the journal is needed any more.
    pub(super) fn committed(&mut self, number: i64, is_synced: bool) {
        self.number = number;
        self.behind = 0;
        if let Some(laid) = self.file.as_mut().filter(|_| is_synced) {
            laid.at = HEADER;
            laid.round = laid.round.wrapping_add(1);
        }
    }

    /// Makes the changes once more that SQLite has not committed.
    ///
    /// # Errors
    /// When they cannot be read or made.
    pub(super) fn replay_behind(&self, conn: &Connection) -> Result<(), StoreError> {
        let Some(laid) = self.file.as_ref().filter(|_| self.behind > 0) else {
            return Ok(());
        };
        let records = records(&laid.file).map_err(|source| io_error(&self.path, source))?;
        let first = self.number - i64::from(self.behind);
        let missing: Vec<_> = records
            .iter()
            .filter(|record| (first + 1..=self.number).contains(&record.number))
            .collect();
        if missing.len() != self.behind as usize {
            return Err(damaged(&self.path, "records are gone".to_owned()));
        }
        missing
            .into_iter()
            .try_for_each(|record| record.replay(conn, &self.path))
    }
}

fn damaged(path: &Path, detail: String) -> StoreError {
    StoreError::Damaged {
        path: path.display().to_string(),
        detail,
    }
}

fn header_of(hive: &str) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    let id = hive.as_bytes();
    let length = id.len().min(ID);
    header[8..8 + length].copy_from_slice(&id[..length]);
    let checksum = crc32fast::hash(&header[..8 + ID]);
    header[8 + ID..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// A file with all its blocks, so that a sync needs no journal commit of the file system.
fn lay_out(path: &Path, hive: &str, bytes: u64) -> io::Result<Option<Laid>> {
    if bytes <= HEADER {
        return Ok(None);
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let length = fill(&file, bytes)?;
    file.sync_all()?;
    file.write_all_at(&header_of(hive), 0)?;
    file.sync_all()?;
    // Its name must be as durable as what it will hold.
    if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        File::open(directory)?.sync_all()?;
    }
    let mut round = [0; 8];
    getrandom::fill(&mut round).map_err(io::Error::other)?;
    let direct = Direct::open(path, HEADER).inspect_err(
        |error| tracing::debug!(%error, "the redo journal goes through the page cache"),
    );
    Ok(Some(Laid {
        file,
        direct: direct.ok(),
        bytes: length,
        at: HEADER,
        round: u64::from_le_bytes(round),
    }))
}

/// Writes zeros to the end of a file until it has `bytes`; its length.
pub(super) fn fill(file: &File, bytes: u64) -> io::Result<u64> {
    let zeros = [0_u8; 64 * 1024];
    let length = file.metadata()?.len();
    let mut at = length;
    while at < bytes {
        let step = usize::try_from(bytes - at).map_or(zeros.len(), |rest| rest.min(zeros.len()));
        if let Err(error) = file.write_all_at(&zeros[..step], at) {
            // The little space that is left is for the commits themselves.
            file.set_len(length)?;
            return Err(error);
        }
        at += step as u64;
    }
    Ok(at)
}

/// Fills in the head of a record.
fn seal(record: &mut [u8], round: u64, number: i64) {
    let length = u32::try_from(record.len()).expect("no longer than the journal");
    record[..8].copy_from_slice(&round.to_le_bytes());
    record[8..16].copy_from_slice(&number.to_le_bytes());
    record[16..20].copy_from_slice(&length.to_le_bytes());
    record[20..HEAD].fill(0);
    let checksum = crc32fast::hash(record);
    record[20..HEAD].copy_from_slice(&checksum.to_le_bytes());
}

/// The records of the newest round, up to the first that is not intact.
fn records(file: &File) -> io::Result<Vec<Record>> {
    let mut found: Vec<Record> = Vec::new();
    let mut newest = None;
    let mut at = HEADER;
    let end = file.metadata()?.len();
    loop {
        let mut head = [0; HEAD];
        if !read_up_to(file, &mut head, at)? {
            return Ok(found);
        }
        let round = &head[..8];
        let number = i64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(head[16..20].try_into().expect("four bytes"));
        let is_next = found.last().is_none_or(|last| number == last.number + 1);
        let fits = length as usize >= HEAD && at + u64::from(length) <= end;
        if !is_next || !fits || newest.is_some_and(|newest: [u8; 8]| newest != *round) {
            return Ok(found);
        }
        newest = round.try_into().ok();
        let mut record = vec![0; length as usize];
        if !read_up_to(file, &mut record, at)? {
            return Ok(found);
        }
        record[20..HEAD].fill(0);
        if crc32fast::hash(&record).to_le_bytes() != head[20..HEAD] {
            return Ok(found);
        }
        record.drain(..HEAD);
        found.push(Record {
            number,
            changes: record,
        });
        at += u64::from(length).next_multiple_of(SECTOR as u64);
    }
}

/// Fills the buffer; false when the file ends before.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(buffer, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
