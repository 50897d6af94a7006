//! What a group changed, as statements: what its record will hold.

use super::{HEAD, KEPT_BYTES, Statement, Value};

/// What the open group changed, as far as the journal can carry it.
#[derive(Debug)]
pub(in crate::sqlite) struct Changes {
    /// Room for a record's head, then the statements.
    pub(super) bytes: Vec<u8>,
    /// Where the current operation begins, and how many rows it changed by these statements.
    operation: usize,
    rows: u64,
    /// Whether this is all that the group changed.
    pub(super) is_all: bool,
    limit: usize,
}

impl Changes {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: vec![0; HEAD],
            operation: HEAD,
            rows: 0,
            is_all: true,
            limit,
        }
    }

    /// A statement that is to be run when SQLite catches up; false, and it is not taken, when the
    /// journal cannot carry it.
    pub(in crate::sqlite) fn defer(&mut self, statement: Statement, values: &[Value<'_>]) -> bool {
        let before = self.bytes.len();
        statement.encode(values, &mut self.bytes);
        let fits = self.is_all && self.bytes.len() <= self.limit;
        if !fits {
            self.bytes.truncate(before);
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
            statement.encode(values, &mut self.bytes);
            self.is_all = self.bytes.len() <= self.limit;
        }
    }

    pub(in crate::sqlite) fn begin_operation(&mut self) {
        self.operation = self.bytes.len();
        self.rows = 0;
    }

    /// The operation stands, and changed so many rows.
    pub(in crate::sqlite) fn keep_operation(&mut self, rows: u64) {
        self.is_all &= rows == self.rows;
    }

    pub(in crate::sqlite) fn undo_operation(&mut self) {
        self.bytes.truncate(self.operation);
    }

    pub(in crate::sqlite) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.bytes.resize(HEAD, 0);
        self.is_all = true;
    }

    /// All of the group's statements, if [`Self::is_all`].
    pub(in crate::sqlite) fn statements(&self) -> &[u8] {
        &self.bytes[HEAD..]
    }

    /// What was deferred is run now; whether the current operation has a part in it.
    pub(in crate::sqlite) fn are_run(&mut self) -> bool {
        self.rows = 0;
        self.bytes.len() > self.operation
    }

    /// Whether the group changed nothing that lasts.
    pub(in crate::sqlite) fn are_none(&self) -> bool {
        self.is_all && self.bytes.len() == HEAD
    }
}
