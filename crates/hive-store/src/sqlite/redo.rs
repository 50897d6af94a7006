//! The redo journal: a group is durable once what it changed is written and synced here, in one
//! piece. SQLite commits behind, when nobody waits for it, and a start brings in what it lacks.
//!
//! The file is laid out beforehand and has two halves. One is filled from its beginning, record by
//! record, while SQLite commits and syncs what the other one holds; then they change places. A record
//! says to which round it belongs, in a number that nobody outside can guess, because behind the
//! last record lies what earlier ones held, and that is what agents wrote.
//!
//! Groups are numbered, those too that SQLite synced itself, and the database knows the last one
//! that is in it. So a journal that does not fit the database beside it is noticed.

mod catching_up;
mod changes;
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
pub(super) use catching_up::{Waiting, run};
pub(super) use changes::Changes;
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
        let nonsense = || format!("record {} makes no sense", self.number);
        let steps =
            catching_up::steps(&self.changes).ok_or_else(|| damaged(journal, nonsense()))?;
        catching_up::take(conn, &self.changes, &steps, || {}).map_err(|error| {
            if super::is_disk_full(&error) {
                return StoreError::DiskFull;
            }
            let detail = format!("record {} does not fit the database: {error}", self.number);
            damaged(journal, detail)
        })
    }
}

/// The journal of one open database.
#[derive(Debug)]
pub(super) struct Journal {
    /// None when there was no room for one: then SQLite syncs every group itself.
    file: Option<Laid>,
    /// The number of the last group that is durable.
    number: i64,
}

#[derive(Debug)]
struct Laid {
    path: PathBuf,
    file: File,
    /// The way past the page cache, where the file system has one.
    direct: Option<File>,
    bytes: u64,
    /// The half that is filled.
    half: Half,
    /// Where the next record goes.
    at: u64,
    /// The number of the last group in the other half.
    last_in_other: i64,
    /// What the records since this half was begun have in common.
    round: u64,
}

impl Laid {
    /// Goes on at the beginning of a half.
    fn begin(&mut self, half: Half) {
        self.half = half;
        self.at = half.start(self.bytes);
        self.round = self.round.wrapping_add(1);
    }

    /// Whether there is room for a record of so many bytes, be it that the halves change places.
    /// `number` is the last group that was written, `synced` the last that SQLite has synced.
    fn make_room(&mut self, bytes: usize, number: i64, synced: i64) -> bool {
        let padded = bytes.next_multiple_of(SECTOR) as u64;
        if self.at + padded <= self.half.end(self.bytes) {
            return true;
        }
        let other = self.half.other();
        let room = other.end(self.bytes) - other.start(self.bytes);
        if self.last_in_other > synced || padded > room {
            return false;
        }
        self.begin(other);
        self.last_in_other = number;
        true
    }

    fn write(&mut self, sectors: &[u8]) -> Result<(), StoreError> {
        let not_written = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull => StoreError::DiskFull,
            _ => io_error(&self.path, error),
        };
        if let Some(direct) = &self.direct {
            crate::failpoint!("store::before_redo_sync");
            direct::write_durably(direct, sectors, self.at).map_err(not_written)?;
        } else {
            let written = self.file.write_all_at(sectors, self.at);
            written.map_err(not_written)?;
            crate::failpoint!("store::before_redo_sync");
            // Written and not synced, it may be there after a crash or not: there is no way on.
            let synced = self.file.sync_data();
            synced.map_err(|source| io_error(&self.path, source))?;
        }
        self.at += sectors.len() as u64;
        Ok(())
    }
}

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Half {
    fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// Where it begins in a file of so many bytes.
    fn start(self, bytes: u64) -> u64 {
        match self {
            Self::First => HEADER,
            Self::Second => {
                let half = bytes.saturating_sub(HEADER) / 2;
                HEADER + half.next_multiple_of(SECTOR as u64)
            }
        }
    }

    /// Where it ends.
    fn end(self, bytes: u64) -> u64 {
        match self {
            Self::First => Self::Second.start(bytes),
            Self::Second => bytes,
        }
    }
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
        Ok(Self { file, number })
    }

    /// An empty group, which takes as much as a record may hold.
    pub(super) fn changes(&self) -> Changes {
        let limit = self.file.as_ref().map_or(HEAD, |laid| {
            let half = Half::First.end(laid.bytes) - HEADER;
            usize::try_from(half).unwrap_or(usize::MAX)
        });
        Changes::new(limit)
    }

    pub(super) fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// The number of the last group that is durable.
    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// Writes and syncs what the group changed. False, and nothing is done, when the journal cannot
    /// carry it, or has no room left because SQLite has not synced more than `synced`.
    ///
    /// # Errors
    /// When it is not known to be on disk.
    pub(super) fn append(
        &mut self,
        changes: &mut Changes,
        synced: i64,
    ) -> Result<bool, StoreError> {
        let Some(laid) = self.file.as_mut().filter(|_| changes.is_all) else {
            return Ok(false);
        };
        let record = &mut changes.record;
        let length = record.len();
        if !laid.make_room(length, self.number, synced) {
            return Ok(false);
        }
        seal(record.bytes_mut(), laid.round, self.number + 1);
        let written = laid.write(record.whole_sectors());
        record.truncate(length);
        written?;
        self.number += 1;
        Ok(true)
    }

    /// The last group in the half that is not being filled: once SQLite has synced it, there is room
    /// for more.
    pub(super) fn last_in_other(&self) -> i64 {
        self.file.as_ref().map_or(0, |laid| laid.last_in_other)
    }

    /// SQLite has committed and synced everything up to group `number`: nothing of the journal is
    /// needed any more.
    pub(super) fn start_over(&mut self, number: i64) {
        self.number = number;
        if let Some(laid) = &mut self.file {
            laid.begin(Half::First);
            laid.last_in_other = 0;
        }
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
    let direct = direct::open(path, HEADER).inspect_err(
        |error| tracing::debug!(%error, "the redo journal goes through the page cache"),
    );
    Ok(Some(Laid {
        path: path.to_path_buf(),
        file,
        direct: direct.ok(),
        bytes: length,
        half: Half::First,
        at: HEADER,
        last_in_other: 0,
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

/// The records of both halves, oldest first.
fn records(file: &File) -> io::Result<Vec<Record>> {
    let bytes = file.metadata()?.len();
    let mut records = records_from(file, Half::First.start(bytes))?;
    // A journal from before there were halves goes on across the middle: what follows is known then.
    let first = records.first().map_or(0, |record| record.number);
    let known = first..first + records.len() as i64;
    let second = records_from(file, Half::Second.start(bytes))?;
    records.extend(
        second
            .into_iter()
            .filter(|record| !known.contains(&record.number)),
    );
    records.sort_by_key(|record| record.number);
    Ok(records)
}

/// The records of one round, up to the first that is not intact.
fn records_from(file: &File, start: u64) -> io::Result<Vec<Record>> {
    let mut found: Vec<Record> = Vec::new();
    let mut newest = None;
    let mut at = start;
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

#[cfg(test)]
mod tests {
    use super::*;

    const HIVE: &str = "a hive";

    /// Appends a group of so many bytes, about; whether there was room.
    fn append(journal: &mut Journal, bytes: usize, synced: i64) -> bool {
        let mut changes = journal.changes();
        let text = "x".repeat(bytes);
        assert!(changes.defer(Statement::CloseTurn, &[Value::Text(&text)]));
        journal.append(&mut changes, synced).unwrap()
    }

    fn numbers(path: &Path) -> Vec<i64> {
        let records = Journal::read(path, HIVE).unwrap();
        records.iter().map(|record| record.number).collect()
    }

    #[test]
    fn a_half_is_filled_again_once_sqlite_has_synced_what_it_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::start(&path, HIVE, HEADER + 8 * 1024, 0).unwrap();
        // Four kilobytes each: four groups of a kilobyte.
        for number in 1..=8 {
            assert!(append(&mut journal, 900, 0), "{number}");
        }
        assert_eq!(journal.last_in_other(), 4);
        for synced in [0, 3] {
            assert!(!append(&mut journal, 900, synced), "{synced} is not enough");
        }
        assert_eq!(numbers(&path), (1..=8).collect::<Vec<_>>());
        assert!(append(&mut journal, 900, 4));
        assert_eq!(journal.last_in_other(), 8);
        assert_eq!(numbers(&path), (5..=9).collect::<Vec<_>>());
        for _ in 0..3 {
            assert!(append(&mut journal, 900, 7));
        }
        assert!(!append(&mut journal, 900, 7));
        assert_eq!(numbers(&path), (5..=12).collect::<Vec<_>>());

        journal.start_over(13);
        assert!(append(&mut journal, 900, 13));
        assert!(numbers(&path).ends_with(&[14]));
    }

    #[test]
    fn a_file_system_without_direct_writing_keeps_the_same_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::start(&path, HIVE, HEADER + 64 * 1024, 0).unwrap();
        let mut expected = Vec::new();
        for (number, bytes) in [(1, 100), (2, 5000), (3, 100), (4, 700)] {
            if number == 3 {
                journal.file.as_mut().unwrap().direct = None;
            }
            assert!(append(&mut journal, bytes, 0));
            expected.push(number);
            assert_eq!(numbers(&path), expected);
        }
    }

    #[test]
    fn a_group_larger_than_a_half_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = Journal::start(&path, HIVE, HEADER + 8 * 1024, 0).unwrap();
        let mut changes = journal.changes();
        let text = "x".repeat(4 * 1024);
        assert!(!changes.defer(Statement::CloseTurn, &[Value::Text(&text)]));
        assert!(changes.are_none());
    }

    #[test]
    fn a_journal_without_halves_is_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        drop(Journal::start(&path, HIVE, HEADER + 8 * 1024, 0).unwrap());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        // As they were written before: one after the other, one of them across the middle.
        for number in 1..=10 {
            let mut record = vec![0; HEAD];
            seal(&mut record, 7, number);
            let at = HEADER + (number.cast_unsigned() - 1) * SECTOR as u64;
            file.write_all_at(&record, at).unwrap();
        }
        assert_eq!(numbers(&path), (1..=10).collect::<Vec<_>>());
    }
}
