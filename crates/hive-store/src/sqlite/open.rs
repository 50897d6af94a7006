//! Opening the database: version, identity, recovery, integrity, migrations.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig};

use super::{
    MIN_SQLITE, OnDemand, Readers, Store, StoreError,
    backlog::Backlog,
    behind::{Behind, Writing},
    books::Books,
    checkpoint::Checkpointer,
    database::Database,
    guard::Guard,
    is_disk_full,
    redo::{Journal, fill},
};

/// The scripts that lead from each format to the next; their number is the newest format.
pub const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003_reports.sql"),
    include_str!("migrations/0004_turn_in_mail.sql"),
    include_str!("migrations/0005_approvals.sql"),
    include_str!("migrations/0006_tool_groups.sql"),
    include_str!("migrations/0007_spend.sql"),
    include_str!("migrations/0008_packed_correspondence.sql"),
    include_str!("migrations/0009_redo.sql"),
    include_str!("migrations/0010_context_by_day.sql"),
    include_str!("migrations/0011_restarts.sql"),
];

/// The format that the redo journal came with.
const REDO_FORMAT: u32 = 9;
/// Of new databases; an older file keeps its own. A commit writes whole pages, each with two system
/// calls: smaller ones make many of a few long messages, and a message of 2 KiB leaves much of one
/// empty; larger ones write much for a short one.
const PAGE_SIZE: u32 = 16384;
/// No database is smaller: SQLite takes such a file for a new one and removes the log beside it.
const SMALLEST: u64 = 512;
/// Up to this size the whole file is checked at every start.
const CHECK_AT_START: u64 = 256 * 1024 * 1024;

/// How a store is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most messages that wait in one inbox.
    pub inbox_depth: u32,
    /// After so many counted failures a message is a dead letter.
    pub deliveries_before_dead: u32,
    /// How much of the write-ahead log is laid out beforehand, so that a commit overwrites blocks
    /// that are there: a sync then needs no journal commit of the file system.
    pub wal_bytes: u64,
    /// How large the redo journal is; 0 for none.
    pub redo_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inbox_depth: 10_000,
            deliveries_before_dead: 5,
            wal_bytes: 33 * 1024 * 1024,
            redo_bytes: 16 * 1024 * 1024,
        }
    }
}

/// The limits that operations look at.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) inbox_depth: u32,
    pub(super) deliveries_before_dead: u32,
}

/// Opens the database at `path`, making it if this hive never had one.
///
/// # Errors
/// Everything that could lead to silent loss ends here: see [`StoreError`].
pub fn open(path: &Path, options: &Options) -> Result<(Store, Readers), StoreError> {
    try_open(path, options).map_err(|error| match error {
        StoreError::Sqlite(error) if is_disk_full(&error) => StoreError::DiskFull,
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            StoreError::DiskFull
        }
        other => other,
    })
}

fn try_open(path: &Path, options: &Options) -> Result<(Store, Readers), StoreError> {
    let found = rusqlite::version();
    if rusqlite::version_number() < MIN_SQLITE.0 {
        return Err(StoreError::OldSqlite { found });
    }
    let identity = Identity::of(path);
    let is_new = identity.check_presence(path)?;
    let guard = Guard::before_open(path)?;
    let acknowledged = guard.number;
    let mut conn = connect(path, is_new)?;
    let mut guard = guard.after_recovery(&mut conn)?;
    // Only now: SQLite removes a log that it finds beside an empty database.
    lay_out_wal(&beside(path, "-wal"), options.wal_bytes)?;
    if fs::metadata(path)
        .map_err(|source| io_error(path, source))?
        .len()
        <= CHECK_AT_START
    {
        let problem = check(&conn, "PRAGMA quick_check(5)");
        if let Some(detail) = problem.unwrap_or_else(|error| Some(error.to_string())) {
            return Err(StoreError::Damaged {
                path: path.display().to_string(),
                detail,
            });
        }
    }
    let format = format_of(&conn, path)?;
    identity.compare(&conn, path, format)?;
    let redo = beside(path, "-redo");
    bring_in(&conn, &redo, format, acknowledged)?;
    migrate(&conn, format)?;
    // From here on pages are written when a transaction commits and not before: on a full disk one
    // that only catches up with the redo journal, to look something up, needs no room then. What is
    // behind is bounded by the journal; what a migration changes is not.
    conn.pragma_update(None, "cache_spill", false)?;
    identity.write_down(&conn)?;
    guard.sync_log()?;
    let id = hive_id(&conn)?.unwrap_or_default();
    let number = last_group(&conn)?;
    let journal = Journal::start(&redo, &id, options.redo_bytes, number)?;
    if journal.is_there() {
        guard.watch_journal(redo)?;
    }
    let books = Books::load(&conn)?;
    let checkpointer = Checkpointer::start(path, guard.shared_mark())?;
    let limits = Limits {
        inbox_depth: options.inbox_depth,
        deliveries_before_dead: options.deliveries_before_dead,
    };
    let behind = Arc::new(Behind::new(number));
    let guard = Arc::new(guard);
    let database = Database::new(conn, Arc::clone(&guard), checkpointer, Arc::clone(&behind));
    let backlog = Arc::new(Backlog::new(database, Arc::clone(&guard)));
    let store = Store {
        settler: None,
        on_demand: OnDemand::new(Arc::clone(&backlog), journal.changes()),
        backlog,
        books,
        guard,
        limits,
        journal,
        behind: Writing(Arc::clone(&behind)),
        unnoted: None,
    };
    Ok((store, Readers::new(path.to_path_buf(), behind)))
}

/// Brings in the groups of the redo journal that SQLite had not committed.
fn bring_in(
    conn: &Connection,
    redo: &Path,
    format: u32,
    acknowledged: i64,
) -> Result<(), StoreError> {
    let id = if format == 0 { None } else { hive_id(conn)? };
    let records = Journal::read(redo, &id.unwrap_or_default())?;
    // Before this format there was no journal: one that lies beside such a database is of a later
    // time.
    let has_numbers = format >= REDO_FORMAT;
    let committed = if has_numbers { last_group(conn)? } else { 0 };
    let missing: Vec<_> = records
        .iter()
        .filter(|record| record.number > committed)
        .collect();
    let first = missing
        .first()
        .map_or(committed, |record| record.number - 1);
    let last = missing.last().map_or(committed, |record| record.number);
    let follow = missing
        .windows(2)
        .all(|pair| pair[1].number == pair[0].number + 1);
    let fits = first == committed && follow && (has_numbers || missing.is_empty());
    if !fits || last < acknowledged {
        return Err(StoreError::LostCommits {
            path: redo.display().to_string(),
            detail: format!(
                "group {acknowledged} was acknowledged, {committed} is the last in the database, \
                 and the redo journal has {} to {last}",
                first + 1
            ),
        });
    }
    if missing.is_empty() {
        return Ok(());
    }
    tracing::info!(groups = missing.len(), "bringing in the redo journal");
    conn.execute_batch("BEGIN")?;
    for record in missing {
        // A connection that is dropped undoes what it did not commit.
        record.replay(conn, redo)?;
    }
    conn.execute("UPDATE redo SET number = ?1", [last])?;
    conn.execute_batch("COMMIT")?;
    Ok(())
}

/// The number of the last group in the database.
fn last_group(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("SELECT number FROM redo", [], |row| row.get(0))
}

fn connect(path: &Path, is_new: bool) -> Result<Connection, StoreError> {
    if is_new {
        // SQLite makes the log and its index as private as it finds the database.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|source| io_error(path, source))?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|error| damaged(path, &error))?;
    conn.set_prepared_statement_cache_capacity(128);
    keep_log_on_close(&conn, true)?;
    let set_up = || -> rusqlite::Result<()> {
        // Without this, a statement whose plan may depend on a bound value is compiled anew every
        // time another value is bound: nearly all of ours, because of the partial indexes.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.pragma_update(None, "page_size", PAGE_SIZE)?;
        conn.pragma_update(None, "journal_mode", "wal")?;
        // The log is synced where that is due: after a commit that is to be acknowledged, unless
        // the redo journal has it, and by SQLite itself before it copies or starts over.
        conn.pragma_update(None, "synchronous", "normal")?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.pragma_update(None, "cache_size", -8192)?;
        conn.pragma_update(None, "temp_store", "memory")?;
        conn.pragma_update(None, "foreign_keys", false)
    };
    set_up().map_err(|error| damaged(path, &error))?;
    Ok(conn)
}

/// Whether a connection that closes leaves the log to the next start. Otherwise SQLite copies and
/// removes it, behind the back of the guard: only a store that is closed in good order wants that.
pub(super) fn keep_log_on_close(conn: &Connection, keep: bool) -> rusqlite::Result<bool> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
}

/// An error while opening: what SQLite says of a file that is not a database, or not readable.
fn damaged(path: &Path, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreError::DiskFull,
        Some(
            rusqlite::ErrorCode::CannotOpen
            | rusqlite::ErrorCode::ReadOnly
            | rusqlite::ErrorCode::PermissionDenied,
        ) => io_error(path, io::Error::other(error.to_string())),
        _ => StoreError::Damaged {
            path: path.display().to_string(),
            detail: error.to_string(),
        },
    }
}

/// Runs a check pragma; what it complains of, or none.
pub(super) fn check(conn: &Connection, pragma: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = conn.prepare(pragma)?;
    let lines: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok((lines != ["ok"]).then(|| lines.join("; ")))
}

fn format_of(conn: &Connection, path: &Path) -> Result<u32, StoreError> {
    let format: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = u32::try_from(MIGRATIONS.len()).expect("a handful of migrations");
    if format > known {
        return Err(StoreError::TooNew {
            path: path.display().to_string(),
            found: format,
            known,
        });
    }
    Ok(format)
}

fn migrate(conn: &Connection, format: u32) -> Result<(), StoreError> {
    for (script, next) in MIGRATIONS.iter().zip(1_u32..).skip(format as usize) {
        tracing::info!(format = next, "bringing the database to its next format");
        conn.execute_batch(&format!(
            "BEGIN; {script} PRAGMA user_version = {next}; COMMIT;"
        ))
        .inspect_err(|_| {
            if !conn.is_autocommit()
                && let Err(error) = conn.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "cannot roll back a failed migration");
            }
        })?;
    }
    Ok(())
}

/// Writes zeros to the end of the log until it has `bytes`. SQLite reads a log up to the first
/// frame that does not check, so zeros behind it mean nothing to it.
fn lay_out_wal(wal: &Path, bytes: u64) -> Result<(), StoreError> {
    let lay_out = || -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(wal)?;
        fill(&file, bytes)?;
        file.sync_all()
    };
    match lay_out() {
        // It only makes commits faster; on a full disk the commits themselves will tell.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        other => other.map_err(|source| io_error(wal, source)),
    }
}

/// Which hive a database belongs to: a random id in the file and beside it, so that a database
/// that vanished or was swapped is not taken for a new hive.
struct Identity {
    path: PathBuf,
    known: Option<String>,
}

impl Identity {
    fn of(database: &Path) -> Self {
        let path = beside(database, "-id");
        let known = fs::read_to_string(&path)
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|id| !id.is_empty());
        Self { path, known }
    }

    /// Whether this is a new hive.
    fn check_presence(&self, database: &Path) -> Result<bool, StoreError> {
        let length = match fs::metadata(database) {
            Ok(found) => Some(found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_error(database, error)),
        };
        if length.unwrap_or(0) < SMALLEST && self.known.is_some() {
            let what = if length.is_none() { "missing" } else { "empty" };
            return Err(not_ours(
                database,
                format!("it is {what}, and {} says it was here", self.path.display()),
            ));
        }
        Ok(length.is_none())
    }

    /// Refuses another hive's database before anything in it is changed.
    fn compare(&self, conn: &Connection, database: &Path, format: u32) -> Result<(), StoreError> {
        let Some(known) = &self.known else {
            return Ok(());
        };
        let found = if format == 0 { None } else { hive_id(conn)? };
        match found {
            Some(id) if id == *known => Ok(()),
            Some(id) => Err(not_ours(
                database,
                format!("its id is {id}, and {known} was here before"),
            )),
            None => Err(not_ours(
                database,
                format!("it has no id, and {known} was here before"),
            )),
        }
    }

    fn write_down(&self, conn: &Connection) -> Result<(), StoreError> {
        conn.execute(
            "INSERT OR IGNORE INTO meta VALUES ('hive_id', ?1), ('indexed_messages', 0)",
            [random_id()],
        )?;
        match (&self.known, hive_id(conn)?) {
            (None, Some(id)) => write_private(&self.path, &format!("{id}\n"))
                .map_err(|source| io_error(&self.path, source)),
            _ => Ok(()),
        }
    }
}

fn hive_id(conn: &Connection) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT value FROM meta WHERE key = 'hive_id'", [], |row| {
        row.get(0)
    })
    .optional()
}

pub(super) fn not_ours(database: &Path, detail: String) -> StoreError {
    StoreError::NotOurs {
        path: database.display().to_string(),
        detail,
    }
}

fn random_id() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file that is there as a whole or not at all.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let draft = beside(path, ".new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

/// The path of a file that belongs to the database: its name with a suffix.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        path: path.display().to_string(),
        source,
    }
}
