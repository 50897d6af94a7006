//! What a group changes: in mind only, as statements that SQLite runs when it catches up, for as
//! long as nothing has to be looked up. The first one who asks SQLite takes it, brings it up to
//! what the group has done so far, and from there on statements are run at once.

use std::{
    cell::{Cell, OnceCell, RefCell},
    sync::Arc,
};

use rusqlite::Connection;

use super::{
    StoreError,
    backlog::Backlog,
    database::Database,
    lost_transaction,
    redo::{self, Changes, Statement, Value},
    same_failure,
};

/// The way to the database.
#[derive(Debug)]
pub(super) struct OnDemand {
    backlog: Arc<Backlog>,
    database: OnceCell<Box<Database>>,
    changes: RefCell<Changes>,
    /// Rows that SQLite had changed before the current operation.
    rows_before: Cell<u64>,
    /// Whether SQLite has run statements of the current operation that are not among those rows.
    ran_late: Cell<bool>,
    failed: RefCell<Option<rusqlite::Error>>,
}

impl OnDemand {
    pub(super) fn new(backlog: Arc<Backlog>, changes: Changes) -> Self {
        Self {
            backlog,
            database: OnceCell::new(),
            changes: RefCell::new(changes),
            rows_before: Cell::new(0),
            ran_late: Cell::new(false),
            failed: RefCell::new(None),
        }
    }

    pub(super) fn begin_group(&mut self) {
        self.changes.get_mut().clear();
        *self.failed.get_mut() = None;
    }

    /// The connection, as if everything up to here had been run at once.
    pub(super) fn conn(&self) -> rusqlite::Result<&Connection> {
        if self.has_failed() {
            return Err(lost_transaction());
        }
        if let Some(database) = self.database.get() {
            return Ok(database.conn());
        }
        let taken = self.backlog.take();
        let mut database = taken.inspect_err(|error| self.fail(same_failure(error)))?;
        let mut changes = self.changes.borrow_mut();
        let caught_up = database
            .catch_up(|| {})
            .and_then(|()| redo::run(database.conn(), changes.statements(), || {}));
        self.rows_before.set(database.conn().total_changes());
        self.ran_late.set(changes.are_run());
        let database = self.database.get_or_init(|| database);
        if let Err(error) = caught_up {
            self.fail(same_failure(&error));
            return Err(error);
        }
        Ok(database.conn())
    }

    /// Changes mail: in what the redo journal is to carry, and in the database if it is at hand.
    pub(super) fn change(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> rusqlite::Result<()> {
        if self.database.get().is_none() && self.changes.borrow_mut().defer(statement, values) {
            return Ok(());
        }
        let rows = statement.run(self.conn()?, values)?;
        self.changes.borrow_mut().add(statement, values, rows);
        Ok(())
    }

    pub(super) fn begin_operation(&self) {
        self.changes.borrow_mut().begin_operation();
        self.ran_late.set(false);
        if let Some(database) = self.database.get() {
            self.rows_before.set(database.conn().total_changes());
        }
    }

    /// Whether SQLite has run anything of the current operation that changed something.
    pub(super) fn has_written(&self) -> bool {
        self.ran_late.get() || self.rows() > 0
    }

    /// Whether SQLite gave up the transaction by itself, as it may when the disk is full.
    pub(super) fn is_gone(&self) -> bool {
        let database = self.database.get();
        database.is_some_and(|database| database.conn().is_autocommit())
    }

    pub(super) fn keep_operation(&self) {
        let rows = self.rows();
        self.changes.borrow_mut().keep_operation(rows);
    }

    pub(super) fn undo_operation(&self) {
        self.changes.borrow_mut().undo_operation();
    }

    /// Everything from here on is refused, and nothing of the group is kept.
    pub(super) fn fail(&self, error: rusqlite::Error) {
        *self.failed.borrow_mut() = Some(error);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }

    pub(super) fn failure(&mut self) -> Option<rusqlite::Error> {
        self.failed.get_mut().take()
    }

    pub(super) fn changes(&mut self) -> &mut Changes {
        self.changes.get_mut()
    }

    /// The database, if the group has taken it.
    pub(super) fn database(&mut self) -> Option<&mut Database> {
        self.database.get_mut().map(|database| &mut **database)
    }

    /// Group `number` is durable.
    pub(super) fn is_durable(&mut self, number: i64) {
        let statements = self.changes.get_mut().statements();
        match self.database.get_mut() {
            Some(database) => database.keep(statements, number),
            None => self.backlog.push(statements, number),
        }
    }

    /// Lets the next one have the database.
    pub(super) fn end_group(&mut self) {
        if let Some(database) = self.database.take() {
            self.backlog.put(database);
        }
    }

    /// Undoes what the group did to the database.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(super) fn roll_back(&mut self) -> Result<(), StoreError> {
        self.database
            .get_mut()
            .map_or(Ok(()), |database| Ok(database.roll_back()?))
    }

    fn rows(&self) -> u64 {
        let database = self.database.get();
        database.map_or(0, |database| {
            database.conn().total_changes() - self.rows_before.get()
        })
    }
}
