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
mod backlog;
mod behind;
mod books;
mod checkpoint;
mod command_keys;
mod correspondence;
mod database;
mod guard;
mod lock;
mod mail;
mod on_demand;
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
mod settler;
mod spend;
mod transient;
mod turns;
mod wal;

use std::sync::Arc;

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
pub use readers::{Counts, HistoryQuery, MAX_ROWS, Page, Readers};
pub use reminders::Reminder;
pub use reports::{StatusLine, TOTAL_DAYS};
pub use retention::{Pruned, Retention};
pub use schedules::{Firing, NewSchedule, Schedule};
pub use spend::{BudgetDay, CallCost};

use crate::Refusal;
use backlog::Backlog;
use books::Books;
use on_demand::OnDemand;
use redo::{Journal, Statement, Value};
use settler::Settler;

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
    #[error("the disk is full")]
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
    /// Ends before the rest does: it works with what lies in the backlog.
    settler: Option<Settler>,
    on_demand: OnDemand,
    backlog: Arc<Backlog>,
    books: Books,
    guard: Arc<guard::Guard>,
    limits: open::Limits,
    journal: Journal,
    behind: behind::Writing,
    /// The last group, while it is not noted that it is durable.
    unnoted: Option<i64>,
}

impl Store {
    /// Begins a group: everything until its commit becomes durable together or not at all. `now`
    /// is the time that every operation of the group is stamped with.
    pub fn begin(&mut self, now: Timestamp) -> Group<'_> {
        self.acknowledged();
        self.on_demand.begin_group();
        Group {
            store: self,
            now,
            is_over: false,
        }
    }

    /// To be called when whoever waited for [`Group::make_durable`] has been answered: notes how far
    /// the journal is, so that a journal that lacks this group is known for a damaged one.
    pub fn acknowledged(&mut self) {
        if let Some(number) = self.unnoted.take() {
            self.guard.acknowledged(number);
        }
    }

    /// How many groups are durable in the redo journal only.
    pub fn behind(&self) -> u32 {
        self.behind.count()
    }

    /// Lets SQLite commit what [`Group::make_durable`] left to it, so that readers see it.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] when it is to be tried again; any other error is final. Whatever was
    /// acknowledged is safe in the journal.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        self.backlog.settle()
    }

    /// Does the same from a thread of its own from now on, a few milliseconds after there is
    /// something to do, or as soon as a reader asks. Should it fail, `on_failure` is called, and the
    /// next group says how.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn settle_in_background(
        &mut self,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        let behind = Arc::clone(&self.behind.0);
        let settler = Settler::start(Arc::clone(&self.backlog), behind, on_failure)?;
        self.settler = Some(settler);
        Ok(())
    }

    /// Goes back to what is durable. A store that is full and cannot even do that has failed.
    fn after_failure(&mut self, error: StoreError) -> StoreError {
        let Err(worse) = self.on_demand.roll_back() else {
            return error;
        };
        tracing::error!(error = %worse, "cannot undo what failed");
        if error.is_passing() {
            return StoreError::Sqlite(lost_transaction());
        }
        error
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
        self.settler = None;
        if let Some(failure) = self.backlog.failure() {
            return Err(failure);
        }
        self.settle()?;
        let database = self.backlog.take()?;
        database.close()
    }
}

/// One transaction of many operations.
#[derive(Debug)]
pub struct Group<'s> {
    store: &'s mut Store,
    now: Timestamp,
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
        let savepoint = tx.conn()?.prepare_cached("SAVEPOINT operation");
        savepoint?.execute([])?;
        let outcome = operation(&mut tx);
        match self.end_operation(outcome.is_ok()) {
            Ok(()) => outcome,
            Err(lost) => {
                let refusal = outcome.err().unwrap_or(Refusal::Sqlite(lost_transaction()));
                self.store.on_demand.fail(match &refusal {
                    Refusal::Sqlite(error) => same_failure(error),
                    _ => lost,
                });
                Err(refusal)
            }
        }
    }

    /// Runs an operation that refuses before it writes, as those of [`Mail`](crate::Mail) do. It
    /// needs no savepoint, which would copy every page that the operation touches, and SQLite only
    /// when something has to be looked up. Should it fail after SQLite wrote something all the same,
    /// the group as a whole is undone, never a part of it.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    pub fn run_checked<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut tx = self.begin_operation()?;
        let outcome = operation(&mut tx);
        let on_demand = &self.store.on_demand;
        let is_gone = on_demand.is_gone();
        if let Err(refusal) = &outcome {
            if is_gone || on_demand.has_written() {
                on_demand.fail(match refusal {
                    Refusal::Sqlite(error) => same_failure(error),
                    _ => lost_transaction(),
                });
            }
            on_demand.undo_operation();
            self.store.books.undo_operation();
        } else if is_gone {
            on_demand.fail(lost_transaction());
            return Err(Refusal::Sqlite(lost_transaction()));
        } else {
            on_demand.keep_operation();
        }
        outcome
    }

    fn begin_operation(&mut self) -> Result<Tx<'_>, Refusal> {
        let store = &mut *self.store;
        if store.on_demand.has_failed() {
            return Err(Refusal::Sqlite(lost_transaction()));
        }
        store.books.begin_operation();
        store.on_demand.begin_operation();
        Ok(Tx {
            on_demand: &store.on_demand,
            books: &mut store.books,
            limits: &store.limits,
            now: self.now,
        })
    }

    /// Keeps or undoes the operation that ran; an error when the transaction itself is gone.
    fn end_operation(&mut self, keep: bool) -> rusqlite::Result<()> {
        let on_demand = &self.store.on_demand;
        if on_demand.is_gone() {
            // SQLite rolled everything back by itself, as it may when the disk is full. An
            // operation that took no notice of it must not run outside of a transaction.
            return Err(lost_transaction());
        }
        let conn = on_demand.conn()?;
        if keep {
            on_demand.keep_operation();
        } else {
            on_demand.undo_operation();
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
        let failed = self.store.on_demand.failure().map(store_error);
        let result = match failed.or_else(|| self.store.backlog.failure()) {
            Some(error) => Err(error),
            None => how(&mut self),
        };
        let result = match result {
            Ok(()) => {
                self.store.books.keep();
                Ok(())
            }
            Err(error) => {
                self.store.books.undo_group();
                Err(self.store.after_failure(error))
            }
        };
        self.store.on_demand.end_group();
        result
    }

    /// Ends a group that changed nothing.
    fn leave(&mut self) -> Result<(), StoreError> {
        let database = self.store.on_demand.database();
        database.map_or(Ok(()), |database| database.leave())
    }

    fn try_commit(&mut self) -> Result<(), StoreError> {
        crate::failpoint!("store::before_commit");
        let store = &mut *self.store;
        if store.on_demand.changes().are_none() && store.behind.count() == 0 {
            return self.leave();
        }
        store.on_demand.conn().map_err(store_error)?;
        let number = store.journal.number() + 1;
        let database = store.on_demand.database().ok_or_else(lost_transaction)?;
        database.commit(number, true)?;
        store.journal.start_over(number);
        crate::failpoint!("store::after_commit");
        Ok(())
    }

    fn try_make_durable(&mut self) -> Result<(), StoreError> {
        let store = &mut *self.store;
        if store.on_demand.changes().are_none() {
            return self.leave();
        }
        let synced = store.behind.last_synced();
        if !store.journal.append(store.on_demand.changes(), synced)? {
            return self.try_commit();
        }
        crate::failpoint!("store::after_redo_sync");
        let number = store.journal.number();
        store.guard.after_redo()?;
        store.unnoted = Some(number);
        store.on_demand.is_durable(number);
        store.behind.durable(number);
        store.behind.ask_for_sync(store.journal.last_in_other());
        Ok(())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.store.books.undo_group();
        if let Err(error) = self.store.on_demand.roll_back() {
            tracing::error!(%error, "cannot undo a group");
        }
        self.store.on_demand.end_group();
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
    on_demand: &'g OnDemand,
    books: &'g mut Books,
    limits: &'g open::Limits,
    now: Timestamp,
}

impl<'g> Tx<'g> {
    /// The time this group is stamped with.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// SQLite, for what is not in mind.
    fn conn(&self) -> rusqlite::Result<&'g Connection> {
        self.on_demand.conn()
    }

    /// Changes mail.
    fn change(&mut self, statement: Statement, values: &[Value<'_>]) -> rusqlite::Result<()> {
        self.on_demand.change(statement, values)
    }
}
