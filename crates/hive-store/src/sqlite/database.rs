//! SQLite's side of the store: the connection that writes, with the groups that it has not
//! committed yet, and what a commit takes besides.

use std::sync::Arc;

use rusqlite::Connection;

use super::{
    StoreError,
    behind::Behind,
    checkpoint::Checkpointer,
    guard::Guard,
    redo::{self, Waiting},
    store_error,
};
use crate::pace::Pace;

/// Whoever has it may run statements; the transaction stays open from one to the next.
#[derive(Debug)]
pub(super) struct Database {
    conn: Connection,
    guard: Arc<Guard>,
    checkpointer: Checkpointer,
    behind: Arc<Behind>,
    /// The groups that are durable and not committed here.
    waiting: Waiting,
    /// How much of them the open transaction has run.
    run: usize,
}

impl Database {
    pub(super) fn new(
        conn: Connection,
        guard: Arc<Guard>,
        checkpointer: Checkpointer,
        behind: Arc<Behind>,
    ) -> Self {
        Self {
            conn,
            guard,
            checkpointer,
            behind,
            waiting: Waiting::default(),
            run: 0,
        }
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.conn
    }

    /// Takes over groups that became durable later than those it has.
    pub(super) fn take_over(&mut self, later: &mut Waiting) {
        self.waiting.append(later);
    }

    /// Brings the open transaction up to what is durable; `after_each` statement something else is
    /// done.
    ///
    /// # Errors
    /// Those of SQLite; the transaction is of no use then.
    pub(super) fn catch_up(&mut self, after_each: impl FnMut()) -> rusqlite::Result<()> {
        if self.conn.is_autocommit() {
            self.conn.prepare_cached("BEGIN")?.execute([])?;
        }
        redo::run(&self.conn, &self.waiting.statements[self.run..], after_each)?;
        self.run = self.waiting.statements.len();
        Ok(())
    }

    /// What the open transaction has just run is durable, as group `number`.
    pub(super) fn keep(&mut self, statements: &[u8], number: i64) {
        self.waiting.push(statements, number);
        self.run = self.waiting.statements.len();
    }

    /// Commits what is durable, so that readers see it, at the pace of work that nobody waits for.
    ///
    /// # Errors
    /// Those of [`Self::commit`].
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        let mut pace = Pace::new();
        self.catch_up(|| pace.step()).map_err(store_error)?;
        if self.waiting.statements.is_empty() {
            return self.leave();
        }
        self.commit(self.waiting.number, false)
    }

    /// Ends a transaction that changed nothing; one that holds what is durable stays open.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(super) fn leave(&self) -> Result<(), StoreError> {
        if self.waiting.statements.is_empty() && !self.conn.is_autocommit() {
            let mut commit = self.conn.prepare_cached("COMMIT")?;
            commit.execute([]).map_err(store_error)?;
        }
        Ok(())
    }

    /// Commits the open transaction as everything up to group `number`.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] when it may be tried again; any other error is final.
    pub(super) fn commit(&mut self, number: i64, sync: bool) -> Result<(), StoreError> {
        let commit = || -> rusqlite::Result<()> {
            let mut note = self.conn.prepare_cached("UPDATE redo SET number = ?1")?;
            note.execute([number])?;
            self.conn.prepare_cached("COMMIT")?.execute([]).map(|_| ())
        };
        commit().map_err(store_error)?;
        // Whatever fails from here on, these must not be run a second time.
        self.waiting.clear();
        self.run = 0;
        if sync {
            self.guard.sync_log()?;
        }
        self.guard.after_commit(sync)?;
        self.behind.committed(number);
        if sync {
            self.behind.synced(number);
        }
        self.checkpointer.after_commit(&self.conn, &self.guard);
        Ok(())
    }

    /// Undoes what is not committed. What is durable of it is run again when somebody catches up.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(super) fn roll_back(&mut self) -> rusqlite::Result<()> {
        self.run = 0;
        if self.conn.is_autocommit() {
            return Ok(());
        }
        self.conn.execute_batch("ROLLBACK")
    }

    /// Closes it so that the next start finds everything in the main file.
    ///
    /// # Errors
    /// When the last checkpoint fails; nothing is lost then, the log is read at the next start.
    pub(super) fn close(self) -> Result<(), StoreError> {
        self.checkpointer.stop();
        self.guard.finish(&self.conn)?;
        super::open::keep_log_on_close(&self.conn, false)?;
        self.conn.close().map_err(|(_, error)| error.into())
    }
}
