//! What a group changed, as statements: what its record will hold.

use super::{HEAD, Statement, Value, direct::Fetchable};

/// What the open group changed, as far as the journal can carry it.
#[derive(Debug)]
pub(in crate::sqlite) struct Changes {
    /// Room for a record's head, then the statements.
    pub(super) record: Fetchable,
    /// Where the current operation begins, and how many rows it changed by these statements.
    operation: usize,
    rows: u64,
    /// Whether this is all that the group changed.
    pub(super) is_all: bool,
    limit: usize,
}

impl Changes {
    pub(super) fn new(limit: usize) -> Self {
        let mut changes = Self {
            record: Fetchable::default(),
            operation: HEAD,
            rows: 0,
            is_all: true,
            limit,
        };
        changes.clear();
        changes
    }

    /// A statement that is to be run when SQLite catches up; false, and it is not taken, when the
    /// journal cannot carry it.
    pub(in crate::sqlite) fn defer(&mut self, statement: Statement, values: &[Value<'_>]) -> bool {
        let before = self.record.len();
        statement.encode(values, self.record.end());
        let fits = self.is_all && self.record.len() <= self.limit;
        if !fits {
            self.record.truncate(before);
        }
        fits
    }

    /// A statement that was run, and changed so many rows.
    pub(in crate::sqlite) fn add(
        &mut self,
        statement: Statement,
        values: &[Value<'_>],
        rows: usize,
    ) {
        self.rows += rows as u64;
        if self.is_all {
            statement.encode(values, self.record.end());
            self.is_all = self.record.len() <= self.limit;
        }
    }

    pub(in crate::sqlite) fn begin_operation(&mut self) {
        self.operation = self.record.len();
        self.rows = 0;
    }

    /// The operation stands, and changed so many rows.
    pub(in crate::sqlite) fn keep_operation(&mut self, rows: u64) {
        self.is_all &= rows == self.rows;
    }

    pub(in crate::sqlite) fn undo_operation(&mut self) {
        self.record.truncate(self.operation);
    }

    pub(in crate::sqlite) fn clear(&mut self) {
        self.record.clear();
        self.record.end().extend_from_slice(&[0; HEAD]);
        self.is_all = true;
    }

    /// All of the group's statements, if [`Self::is_all`].
    pub(in crate::sqlite) fn statements(&self) -> &[u8] {
        &self.record.bytes()[HEAD..]
    }

    /// What was deferred is run now; whether the current operation has a part in it.
    pub(in crate::sqlite) fn are_run(&mut self) -> bool {
        self.rows = 0;
        self.record.len() > self.operation
    }

    /// Whether the group changed nothing that lasts.
    pub(in crate::sqlite) fn are_none(&self) -> bool {
        self.is_all && self.record.len() == HEAD
    }
}
