//! The store on SQLite: one writer that commits groups, readers beside it, checkpoints off the
//! writer's path.
//!
//! Invariants:
//! - Nothing is acknowledged before its group is synced: in SQLite's log, or in the redo journal
//!   ([`redo`]) that SQLite is brought up to behind.
//! - One operation of a group that fails is undone alone; its neighbours go on.
//! - What is kept in memory ([`books`]) is undone together with the operation or group that
//!   changed it.
//! - A file that was replaced, unlinked or cut short is noticed and ends the store ([`guard`]):
//!   going on could acknowledge what nobody will find again.

mod agents;
mod approvals;
mod behind;
mod books;
mod checkpoint;
mod command_keys;
mod correspondence;
mod guard;
mod lock;
mod mail;
mod open;
mod pauses;
mod permissions;
mod questions;
mod readers;
mod redo;
mod reminders;
mod reports;
mod retention;
mod schedules;
mod spend;
mod transient;
mod turns;
mod wal;

use hive_wire::Timestamp;
use rusqlite::Connection;
use thiserror::Error;

pub use agents::{AgentRecord, Run, Wanted};
pub use approvals::{Approval, ApprovalState, NewApproval};
pub use lock::{LockError, RootLock};
pub use mail::AtOnce;
pub use open::{MIGRATIONS, Options, open};
pub use permissions::Permissions;
pub use questions::{NewQuestion, QuestionEnd};
pub use readers::{Counts, HistoryQuery, Page, Readers};
pub use reminders::Reminder;
pub use reports::{StatusLine, TOTAL_DAYS};
pub use retention::{Pruned, Retention};
pub use schedules::{Firing, NewSchedule, Schedule};
pub use spend::{BudgetDay, CallCost};

use crate::Refusal;
use books::Books;
use redo::{Changes, Journal, Statement, Value};

/// The oldest SQLite that is known to keep a WAL intact when several connections use it.
pub const MIN_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// Why the store cannot be opened, or can no longer be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The linked SQLite is older than [`MIN_SQLITE`].
    #[error("SQLite {found} is linked, and {} is the oldest that is safe here", MIN_SQLITE.1)]
    OldSqlite {
        /// What is linked.
        found: &'static str,
    },
    /// The file is there but is not a database of ours, or is damaged.
    #[error("the database {path} is damaged: {detail}")]
    Damaged {
        /// Which file.
        path: String,
        /// What was found.
        detail: String,
    },
    /// The database was here before and is gone, or is another one.
    #[error("the database {path} is not the one this hive had: {detail}")]
    NotOurs {
        /// Which file.
        path: String,
        /// What was found.
        detail: String,
    },
    /// Commits that were acknowledged are missing from the write-ahead log.
    #[error("the write-ahead log of {path} lost commits: {detail}")]
    LostCommits {
        /// Which database.
        path: String,
        /// What was found.
        detail: String,
    },
    /// The file was written by a newer build.
    #[error("the database {path} has format {found}, and this build knows up to {known}")]
    TooNew {
        /// Which file.
        path: String,
        /// Its format.
        found: u32,
        /// The newest format this build knows.
        known: u32,
    },
    /// The disk is full; the group was undone and the store can be used again.
    #[error("the disk is full; nothing of this group was kept")]
    DiskFull,
    /// A file or directory cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// Which one.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite failed in a way that leaves no safe way on.
    #[error("the database failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl StoreError {
    /// Whether the same store may be used for the next group.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::DiskFull)
    }

    /// What an operator can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::OldSqlite { .. } => "build with the bundled SQLite (the default)",
            Self::Damaged { .. } | Self::NotOurs { .. } | Self::LostCommits { .. } => {
                "stop here, keep the files, and restore a backup; docs/persistence.md tells how to \
                 look at the damage and how to accept the loss"
            }
            Self::TooNew { .. } => "run the newer hive-c0re, or restore a backup from before it",
            Self::DiskFull => "free some space on the disk",
            Self::Io { .. } => "check that the directory exists, is yours and can be written",
            Self::Sqlite(_) => "see the daemon's log, check the disk, then start again",
        }
    }
}

/// Whether SQLite failed for want of space.
pub(crate) fn is_disk_full(error: &rusqlite::Error) -> bool {
    // The index of the log is a file too; when that cannot grow, SQLite has another word for it.
    let no_room_for_index = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    no_room_for_index || error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}

/// The writing half: the only one that changes the database.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    books: Books,
    guard: guard::Guard,
    checkpointer: checkpoint::Checkpointer,
    limits: open::Limits,
    journal: Journal,
    behind: behind::Writing,
}

impl Store {
    /// Begins a group: everything until its commit becomes durable together or not at all. `now`
    /// is the time that every operation of the group is stamped with.
    pub fn begin(&mut self, now: Timestamp) -> Group<'_> {
        self.journal.changes.clear();
        Group {
            store: self,
            now,
            has_begun: false,
            failed: None,
            is_over: false,
        }
    }

    /// Groups that are durable and not committed share SQLite's transaction with the next one.
    fn begin_transaction(&self) -> rusqlite::Result<()> {
        if self.conn.is_autocommit() {
            self.conn.prepare_cached("BEGIN")?.execute([])?;
        }
        Ok(())
    }

    /// How many groups are durable in the redo journal only.
    pub fn behind(&self) -> u32 {
        self.journal.behind()
    }

    /// Lets SQLite commit what [`Group::make_durable`] left to it, so that readers see it.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] when it is to be tried again; any other error is final. Whatever was
    /// acknowledged is safe in the journal.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        if self.journal.behind() == 0 {
            return Ok(());
        }
        crate::failpoint!("store::before_settle");
        if let Err(error) = self.commit_all(self.journal.number(), false) {
            return Err(self.after_failure(error));
        }
        crate::failpoint!("store::after_settle");
        Ok(())
    }

    /// How readers that find the store behind ask for [`Self::settle`].
    pub fn settle_when_asked(&self, ask: impl Fn() + Send + Sync + 'static) {
        self.behind.ask_by(Box::new(ask));
    }

    /// Commits the open transaction as everything up to group `number`.
    fn commit_all(&mut self, number: i64, sync: bool) -> Result<(), StoreError> {
        let commit = || -> rusqlite::Result<()> {
            let mut note = self.conn.prepare_cached("UPDATE redo SET number = ?1")?;
            note.execute([number])?;
            self.conn.prepare_cached("COMMIT")?.execute([]).map(|_| ())
        };
        commit().map_err(store_error)?;
        if sync {
            self.guard.sync_log()?;
        }
        self.journal.committed(number, sync);
        self.guard.after_commit(sync)?;
        self.behind.committed(number);
        self.checkpointer.after_commit(&self.conn, &self.guard);
        Ok(())
    }

    /// Goes back to what is durable. A store that is full and cannot even do that has failed.
    fn after_failure(&mut self, error: StoreError) -> StoreError {
        let Err(worse) = self.back_to_durable() else {
            return error;
        };
        tracing::error!(error = %worse, "cannot undo what failed");
        if error.is_passing() {
            return StoreError::Sqlite(lost_transaction());
        }
        error
    }

    /// Undoes what is not durable.
    fn back_to_durable(&mut self) -> Result<(), StoreError> {
        if !self.conn.is_autocommit() {
            self.conn.execute_batch("ROLLBACK")?;
        }
        if self.journal.behind() > 0 {
            self.conn.execute_batch("BEGIN")?;
            self.journal.replay_behind(&self.conn)?;
        }
        Ok(())
    }

    /// Runs one operation in a group of its own.
    ///
    /// # Errors
    /// Those of [`Group::commit`]; the operation's own refusal is the inner result.
    pub fn one<T>(
        &mut self,
        now: Timestamp,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<Result<T, Refusal>, StoreError> {
        let mut group = self.begin(now);
        let outcome = group.run(operation);
        group.commit()?;
        Ok(outcome)
    }

    /// Closes the store so that the next start finds everything in the main file.
    ///
    /// # Errors
    /// When the last checkpoint fails; nothing is lost then, the log is read at the next start.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.settle()?;
        let Self {
            conn,
            guard,
            checkpointer,
            ..
        } = self;
        checkpointer.stop();
        guard.finish(&conn)?;
        open::keep_log_on_close(&conn, false)?;
        conn.close().map_err(|(_, error)| error.into())
    }
}

/// One transaction of many operations.
#[derive(Debug)]
pub struct Group<'s> {
    store: &'s mut Store,
    now: Timestamp,
    /// Whether SQLite's transaction is open: what only looks at what is in memory needs none.
    has_begun: bool,
    failed: Option<rusqlite::Error>,
    is_over: bool,
}

impl Group<'_> {
    /// Runs one operation; refused or failed, it leaves no trace and the group goes on.
    ///
    /// # Errors
    /// The operation's own refusal. When SQLite gave up the whole transaction, every operation of
    /// the group fails, and so does the commit.
    pub fn run<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut tx = self.begin_operation()?;
        let before = tx.conn.total_changes();
        tx.conn.prepare_cached("SAVEPOINT operation")?.execute([])?;
        let outcome = operation(&mut tx);
        match self.end_operation(outcome.is_ok(), before) {
            Ok(()) => outcome,
            Err(lost) => {
                let refusal = outcome.err().unwrap_or(Refusal::Sqlite(lost_transaction()));
                self.failed = Some(match &refusal {
                    Refusal::Sqlite(error) => same_failure(error),
                    _ => lost,
                });
                Err(refusal)
            }
        }
    }

    /// Runs an operation that refuses before it writes, as those of [`Mail`](crate::Mail) do. It
    /// needs no savepoint, which would copy every page that the operation touches. Should it fail
    /// after it wrote something all the same, the group as a whole is undone, never a part of it.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    pub fn run_checked<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut tx = self.begin_operation()?;
        let before = tx.conn.total_changes();
        let outcome = operation(&mut tx);
        let conn = &self.store.conn;
        let is_gone = conn.is_autocommit();
        let rows = conn.total_changes() - before;
        if let Err(refusal) = &outcome {
            if is_gone || rows > 0 {
                self.failed = Some(match refusal {
                    Refusal::Sqlite(error) => same_failure(error),
                    _ => lost_transaction(),
                });
            }
            self.store.books.undo_operation();
            self.store.journal.changes.undo_operation();
        } else if is_gone {
            self.failed = Some(lost_transaction());
            return Err(Refusal::Sqlite(lost_transaction()));
        } else {
            self.store.journal.changes.keep_operation(rows);
        }
        outcome
    }

    fn begin_operation(&mut self) -> Result<Tx<'_>, Refusal> {
        if self.failed.is_some() {
            return Err(Refusal::Sqlite(lost_transaction()));
        }
        if !self.has_begun {
            self.store.begin_transaction()?;
            self.has_begun = true;
        }
        self.store.books.begin_operation();
        self.store.journal.changes.begin_operation();
        Ok(Tx {
            conn: &self.store.conn,
            books: &mut self.store.books,
            limits: &self.store.limits,
            changes: &mut self.store.journal.changes,
            now: self.now,
        })
    }

    /// Keeps or undoes the operation that ran; an error when the transaction itself is gone.
    fn end_operation(&mut self, keep: bool, before: u64) -> rusqlite::Result<()> {
        let changes = &mut self.store.journal.changes;
        let conn = &self.store.conn;
        if conn.is_autocommit() {
            // SQLite rolled everything back by itself, as it may when the disk is full. An
            // operation that took no notice of it must not run outside of a transaction.
            return Err(lost_transaction());
        }
        if keep {
            changes.keep_operation(conn.total_changes() - before);
        } else {
            changes.undo_operation();
            self.store.books.undo_operation();
            conn.prepare_cached("ROLLBACK TO operation")?.execute([])?;
        }
        conn.prepare_cached("RELEASE operation")?
            .execute([])
            .map(|_| ())
    }

    /// Makes the group durable, and visible to readers. Only when this returns `Ok` may anything of
    /// it be acknowledged.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] when nothing was kept and the store can go on; any other error is
    /// final, and the store must not be used again.
    pub fn commit(self) -> Result<(), StoreError> {
        self.end(Self::try_commit)
    }

    /// Makes the group durable with as little as possible: only what is acknowledged waits for it.
    /// When it changed nothing but mail, that is in the redo journal alone until
    /// [`Store::settle`].
    ///
    /// # Errors
    /// Those of [`Self::commit`].
    pub fn make_durable(self) -> Result<(), StoreError> {
        self.end(Self::try_make_durable)
    }

    fn end(
        mut self,
        how: impl FnOnce(&mut Self) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.is_over = true;
        let result = match self.failed.take() {
            Some(error) => Err(store_error(error)),
            None => how(&mut self),
        };
        match result {
            Ok(()) => {
                self.store.books.keep();
                Ok(())
            }
            Err(error) => {
                self.store.books.undo_group();
                Err(self.store.after_failure(error))
            }
        }
    }

    fn try_commit(&mut self) -> Result<(), StoreError> {
        crate::failpoint!("store::before_commit");
        let store = &mut *self.store;
        let behind = store.journal.behind();
        if store.journal.changes.are_none() && behind == 0 {
            if self.has_begun {
                store.conn.prepare_cached("COMMIT")?.execute([])?;
            }
            return Ok(());
        }
        store.commit_all(store.journal.number() + 1, true)?;
        crate::failpoint!("store::after_commit");
        Ok(())
    }

    fn try_make_durable(&mut self) -> Result<(), StoreError> {
        let store = &mut *self.store;
        if store.journal.changes.are_none() && store.journal.behind() > 0 {
            return Ok(());
        }
        if store.journal.changes.are_none() || !store.journal.append()? {
            return self.try_commit();
        }
        crate::failpoint!("store::after_redo_sync");
        let number = store.journal.number();
        store.guard.after_redo(number)?;
        store.behind.durable(number);
        Ok(())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.store.books.undo_group();
        if let Err(error) = self.store.back_to_durable() {
            tracing::error!(%error, "cannot undo a group");
        }
    }
}

fn store_error(error: rusqlite::Error) -> StoreError {
    if is_disk_full(&error) {
        StoreError::DiskFull
    } else {
        error.into()
    }
}

/// The same failure once more: SQLite's errors cannot be cloned.
fn same_failure(error: &rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => {
            rusqlite::Error::SqliteFailure(*code, text.clone())
        }
        _ => lost_transaction(),
    }
}

fn lost_transaction() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
        Some("the transaction was rolled back".to_owned()),
    )
}

/// One operation's view of the store.
#[derive(Debug)]
pub struct Tx<'g> {
    conn: &'g Connection,
    books: &'g mut Books,
    limits: &'g open::Limits,
    changes: &'g mut Changes,
    now: Timestamp,
}

impl Tx<'_> {
    /// The time this group is stamped with.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Changes mail, in the database and in what the redo journal is to carry.
    fn change(&mut self, statement: Statement, values: &[Value<'_>]) -> rusqlite::Result<()> {
        let rows = statement.run(self.conn, values)?;
        self.changes.add(statement, values, rows);
        Ok(())
    }
}
