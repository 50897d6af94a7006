//! Noticing what SQLite does not: a database file that was unlinked or replaced under its feet,
//! and acknowledged commits that are missing from the write-ahead log after a crash.
//!
//! SQLite reads a damaged log up to the first bad frame and silently goes on from there. So after
//! every commit that is synced the guard notes, in a small file of its own, how many frames the log
//! holds, and after every group in the redo journal that was acknowledged the number of that. The
//! note is not synced: after a power cut it may be old, which claims less, never more. A log starts
//! over only when all of it is in the database, so a log younger than the note proves nothing lost.

use std::{
    fs::{File, OpenOptions},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use rusqlite::Connection;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx};

use super::{
    StoreError,
    open::{beside, io_error},
    wal::Log,
};

/// Where the two salts stand in a log's header: they change whenever the log starts over.
const SALTS_AT: u64 = 16;
/// How often a log may have started over since the note reached the disk: a power cut takes back
/// half a minute of unsynced notes at most, and a log starts over a few times a second at most.
const UNNOTED_STARTS: u32 = 10_000;

/// What the note says of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    salts: [u32; 2],
    /// Frames that were committed.
    frames: u32,
    /// Frames of those that are in the database file too.
    in_database: u32,
}

/// Where the number of the last group stands, and its checksum, behind the mark.
const NUMBER_AT: u64 = 32;

/// The note on disk, shared with the checkpointer.
#[derive(Debug)]
pub(super) struct MarkFile {
    file: File,
    /// How the log stands.
    mark: Mark,
    /// What is written: never more than was synced.
    noted: Mark,
}

/// Device and inode.
type FileIdentity = (u32, u32, u64);

pub(super) type SharedMark = Arc<Mutex<MarkFile>>;

/// A file that must stay where it is.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    identity: FileIdentity,
    /// The file itself, opened for nothing: closing it leaves SQLite's locks alone.
    file: OwnedFd,
}

impl Watched {
    fn new(path: PathBuf) -> Result<Self, StoreError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = open(&path, flags, Mode::empty())
            .and_then(|file| Ok((identity_of(&file, Path::new(""))?, file)));
        let (identity, file) = opened.map_err(|error| io_error(&path, error.into()))?;
        Ok(Self {
            path,
            identity,
            file,
        })
    }

    /// Refuses to go on when another file lies there, or none.
    fn check_place(&self) -> Result<(), StoreError> {
        self.check(identity_of(CWD, &self.path) == Ok(self.identity))
    }

    /// Refuses to go on when the file has no name any more, be it that another took it: what is
    /// written to it then, nobody will find.
    fn check_name(&self) -> Result<(), StoreError> {
        let found = statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::NLINK);
        self.check(found.is_ok_and(|found| found.stx_nlink > 0))
    }

    fn check(&self, is_there: bool) -> Result<(), StoreError> {
        if is_there {
            return Ok(());
        }
        Err(StoreError::NotOurs {
            path: self.path.display().to_string(),
            detail: "it was removed or replaced while the daemon was running".to_owned(),
        })
    }
}

/// Watches the files of one open database.
#[derive(Debug)]
pub(super) struct Guard {
    /// The database, its log and, if there is one, its redo journal.
    files: Vec<Watched>,
    mark: SharedMark,
    wal_file: File,
    /// Frames in the log after the last commit, as SQLite's hook reports them.
    frames: Arc<AtomicU32>,
}

/// What was found before SQLite touched anything.
pub(super) struct BeforeOpen {
    database: PathBuf,
    noted: Mark,
    /// The last group that was acknowledged.
    pub(super) number: i64,
    log: Option<Log>,
    file: File,
}

impl Guard {
    /// Looks at the files before SQLite does, and leaves them as they are.
    ///
    /// # Errors
    /// [`StoreError::LostCommits`] when the log lacks commits that the note knows of.
    pub(super) fn before_open(database: &Path) -> Result<BeforeOpen, StoreError> {
        let path = beside(database, "-mark");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| io_error(&path, source))?;
        let noted = Mark::read(&file);
        let wal = beside(database, "-wal");
        let log = Log::read(&wal).map_err(|source| io_error(&wal, source))?;
        if noted.is_missing_from(log) {
            return Err(StoreError::LostCommits {
                path: database.display().to_string(),
                detail: format!(
                    "{} pages were committed, {} can be read",
                    noted.frames,
                    log.map_or(0, |log| log.frames)
                ),
            });
        }
        Ok(BeforeOpen {
            database: database.to_path_buf(),
            noted,
            number: read_number(&file),
            log,
            file,
        })
    }

    pub(super) fn shared_mark(&self) -> SharedMark {
        Arc::clone(&self.mark)
    }

    /// Watches the redo journal too.
    pub(super) fn watch_journal(&mut self, path: PathBuf) -> Result<(), StoreError> {
        self.files.push(Watched::new(path)?);
        Ok(())
    }

    /// Makes everything durable that SQLite has committed.
    pub(super) fn sync_log(&self) -> Result<(), StoreError> {
        let synced = self.wal_file.sync_data();
        synced.map_err(|source| io_error(&self.files[1].path, source))
    }

    /// The same, and notes how far that is.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let mark = lock(&self.mark).mark;
        self.sync_log()?;
        lock(&self.mark).synced(mark);
        Ok(())
    }

    /// Called after every group in the redo journal, before it is acknowledged.
    pub(super) fn after_redo(&self) -> Result<(), StoreError> {
        // Somebody waits, and looking a path up takes longer. That a file was moved, which loses
        // nothing, is seen a few milliseconds later, after the commit.
        self.files.iter().try_for_each(Watched::check_name)
    }

    /// Called after a group in the redo journal was acknowledged.
    pub(super) fn acknowledged(&self, number: i64) {
        lock(&self.mark).note_number(number);
    }

    /// Called after every commit that changed something, before it is acknowledged.
    pub(super) fn after_commit(&self, is_synced: bool) -> Result<(), StoreError> {
        self.files.iter().try_for_each(Watched::check_place)?;
        let frames = self.frames.load(Ordering::Relaxed);
        let mut shared = lock(&self.mark);
        let mut mark = shared.mark;
        // A log starts over only once all of it is in the database. Should somebody else have
        // copied it there unnoticed, the note stays with the old log and claims less.
        let may_be_another = mark.in_database >= mark.frames || frames <= mark.frames;
        if may_be_another {
            let salts = read_salts(&self.wal_file).unwrap_or_default();
            if salts != mark.salts {
                mark = Mark {
                    salts,
                    ..Mark::default()
                };
            }
        }
        mark.frames = frames;
        shared.mark = mark;
        if is_synced {
            shared.note(mark);
        }
        Ok(())
    }

    /// Frames in the log after the last commit, and how many of them a checkpoint has copied.
    pub(super) fn frames(&self) -> (u32, u32) {
        let mark = lock(&self.mark).mark;
        (mark.frames, mark.in_database)
    }

    /// Moves everything into the database file and notes that no log is needed.
    pub(super) fn finish(&self, conn: &Connection) -> Result<(), StoreError> {
        let (_, log, copied) = checkpoint(conn, "PASSIVE")?;
        if log == copied {
            let mut shared = lock(&self.mark);
            shared.mark = Mark::default();
            shared.note(Mark::default());
        }
        Ok(())
    }
}

/// Which file lies at `path`. Asks for nothing else: once somebody has looked at a file's times,
/// the kernel writes its inode with the next sync, which makes a commit half as slow again.
fn identity_of(dir: impl AsFd, path: &Path) -> rustix::io::Result<FileIdentity> {
    let found = statx(dir, path, AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

impl BeforeOpen {
    /// Begins to watch the database that SQLite has opened and recovered.
    pub(super) fn after_recovery(self, conn: &mut Connection) -> Result<Guard, StoreError> {
        let frames = Arc::new(AtomicU32::new(0));
        let hook = Arc::clone(&frames);
        conn.wal_hook(Some(
            move |_: &mut rusqlite::hooks::Wal, in_log: std::ffi::c_int| {
                hook.store(u32::try_from(in_log).unwrap_or(0), Ordering::Relaxed);
                Ok(())
            },
        ))?;
        let (_, recovered, copied) = checkpoint(conn, "PASSIVE")?;
        let wal = beside(&self.database, "-wal");
        let wal_file = File::open(&wal).map_err(|source| io_error(&wal, source))?;
        let mark = Mark {
            salts: self.log.map(|log| log.salts).unwrap_or_default(),
            frames: recovered,
            in_database: copied,
        };
        let mut file = MarkFile {
            file: self.file,
            mark,
            noted: self.noted,
        };
        // Written here so that its block is there when the disk is full.
        file.write(mark)
            .map_err(|source| io_error(&beside(&self.database, "-mark"), source))?;
        Ok(Guard {
            files: vec![Watched::new(self.database)?, Watched::new(wal)?],
            mark: Arc::new(Mutex::new(file)),
            wal_file,
            frames,
        })
    }
}

impl MarkFile {
    fn write(&mut self, mark: Mark) -> std::io::Result<()> {
        self.noted = mark;
        self.file.write_all_at(&mark.encode(), 0)
    }

    /// Writes a note that may fail: the old one claims less, and what it is about is safe.
    fn note(&mut self, mark: Mark) {
        if let Err(error) = self.write(mark) {
            tracing::warn!(%error, "cannot note how far the log is");
        }
    }

    fn note_number(&self, number: i64) {
        if let Err(error) = self.file.write_all_at(&encode_number(number), NUMBER_AT) {
            tracing::warn!(%error, "cannot note how far the journal is");
        }
    }

    /// Notes what was synced, unless the log has started over since.
    fn synced(&mut self, mark: Mark) {
        if self.mark.salts == mark.salts {
            self.note_frames(mark.frames);
        }
    }

    /// Notes that so many frames are synced, if that is news.
    fn note_frames(&mut self, frames: u32) {
        let is_known = self.noted.salts == self.mark.salts;
        let noted = if is_known { self.noted.frames } else { 0 };
        self.note(Mark {
            frames: noted.max(frames),
            ..self.mark
        });
    }

    /// Which log it is about.
    pub(super) fn salts(&self) -> [u32; 2] {
        self.mark.salts
    }

    /// Notes how far a checkpoint came that began when the log was the one of `salts`, unless the
    /// log has started over since. A checkpoint syncs the frames that it sees.
    pub(super) fn copied(&mut self, salts: [u32; 2], seen_frames: u32, copied: u32) {
        let is_news = copied > self.mark.in_database && seen_frames <= self.mark.frames;
        if self.mark.salts != salts || !is_news {
            return;
        }
        self.mark.in_database = copied;
        self.note_frames(seen_frames);
    }
}

impl Mark {
    const LENGTH: usize = 20;

    /// Whether commits that this note knows of are neither in the database nor in the log.
    fn is_missing_from(self, log: Option<Log>) -> bool {
        if self.frames <= self.in_database {
            return false;
        }
        match log {
            None => true,
            Some(log) if log.salts == self.salts => log.frames < self.frames,
            Some(log) => {
                let starts = log.salts[0].wrapping_sub(self.salts[0]);
                !(1..=UNNOTED_STARTS).contains(&starts)
            }
        }
    }

    fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let words = [self.salts[0], self.salts[1], self.frames, self.in_database];
        for (slot, word) in bytes.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        let checksum = crc32fast::hash(&bytes[..16]);
        bytes[16..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The note in the file; one that claims nothing when there is none or it is torn.
    fn read(file: &File) -> Self {
        let mut bytes = [0; Self::LENGTH];
        if file.read_exact_at(&mut bytes, 0).is_err() {
            return Self::default();
        }
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if crc32fast::hash(&bytes[..16]) != word(16) {
            return Self::default();
        }
        Self {
            salts: [word(0), word(4)],
            frames: word(8),
            in_database: word(12),
        }
    }
}

fn encode_number(number: i64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..8]);
    bytes[8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The number in the file; one that claims nothing when there is none or it is torn.
fn read_number(file: &File) -> i64 {
    let mut bytes = [0; 12];
    if file.read_exact_at(&mut bytes, NUMBER_AT).is_err() {
        return 0;
    }
    let number = i64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    if encode_number(number) == bytes {
        number
    } else {
        0
    }
}

/// Runs a checkpoint: whether it was held up, frames in the log, frames copied.
pub(super) fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<(bool, u32, u32)> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let frames = |column| {
            row.get::<_, i64>(column)
                .map(|n| u32::try_from(n).unwrap_or(0))
        };
        Ok((row.get(0)?, frames(1)?, frames(2)?))
    })
}

pub(super) fn lock(mark: &SharedMark) -> std::sync::MutexGuard<'_, MarkFile> {
    mark.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_salts(wal: &File) -> Option<[u32; 2]> {
    let mut bytes = [0; 8];
    wal.read_exact_at(&mut bytes, SALTS_AT).ok()?;
    let word =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let salts = [word(0), word(4)];
    (salts != [0, 0]).then_some(salts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_shorter_or_older_than_its_note_lost_commits() {
        let log = |first, second, frames| {
            Some(Log {
                salts: [first, second],
                frames,
            })
        };
        let noted = Mark {
            salts: [7, 1],
            frames: 10,
            in_database: 4,
        };
        let cases = [
            (log(7, 1, 10), false, "all there"),
            (log(7, 1, 12), false, "a commit that was not noted"),
            (log(7, 1, 9), true, "cut short"),
            (None, true, "gone, or its header is damaged"),
            (log(8, 5, 1), false, "started over before it was noted"),
            (log(9, 5, 0), false, "started over, nothing in it yet"),
            (log(300, 5, 3), false, "a note from before a power cut"),
            (log(7, 2, 10), true, "another log"),
            (log(6, 2, 10), true, "an older log"),
            (log(900_000_000, 2, 10), true, "another log"),
        ];
        for (log, lost, why) in cases {
            assert_eq!(noted.is_missing_from(log), lost, "{why}");
        }
        let copied = Mark {
            in_database: 10,
            ..noted
        };
        assert!(
            !copied.is_missing_from(None),
            "all of it is in the database"
        );
    }

    #[test]
    fn a_checkpoint_of_an_older_log_is_not_noted() {
        let mut note = MarkFile {
            file: tempfile::tempfile().unwrap(),
            mark: Mark {
                salts: [2, 2],
                frames: 700,
                in_database: 0,
            },
            noted: Mark {
                salts: [2, 2],
                frames: 500,
                in_database: 0,
            },
        };
        note.copied([1, 1], 600, 600);
        assert_eq!(note.mark.in_database, 0);
        note.copied([2, 2], 900, 900);
        assert_eq!(note.mark.in_database, 0, "it saw more than was noted");
        note.copied([2, 2], 600, 600);
        assert_eq!(note.mark.in_database, 600);
        note.copied([2, 2], 0, 0);
        assert_eq!(note.mark.in_database, 600, "another one was at it");
        let synced = Mark {
            frames: 600,
            ..note.mark
        };
        assert_eq!(Mark::read(&note.file), synced, "not what may be lost");
        note.noted.frames = 650;
        note.copied([2, 2], 620, 610);
        assert_eq!(Mark::read(&note.file).frames, 650);
    }

    #[test]
    fn a_torn_note_claims_nothing() {
        let mut note = MarkFile {
            file: tempfile::tempfile().unwrap(),
            mark: Mark::default(),
            noted: Mark::default(),
        };
        assert_eq!(Mark::read(&note.file), Mark::default());
        let mark = Mark {
            salts: [1, 2],
            frames: 3,
            in_database: 2,
        };
        note.write(mark).unwrap();
        assert_eq!(Mark::read(&note.file), mark);
        note.file.write_all_at(&[9], 8).unwrap();
        assert_eq!(Mark::read(&note.file), Mark::default());
        assert_eq!(read_number(&note.file), 0);
        note.note_number(77);
        assert_eq!(read_number(&note.file), 77);
        note.file.write_all_at(&[9], NUMBER_AT).unwrap();
        assert_eq!(read_number(&note.file), 0);
    }
}
