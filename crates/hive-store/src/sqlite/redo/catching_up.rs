//! Making the changes that SQLite has yet to make, many groups at once: what came and went in the
//! meantime is left out, and each table's turn comes once.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection};

use super::statement::{Statement, Table, Value};

/// What is kept of the room for them: as much as comes until SQLite catches up, in a burst.
const KEPT_BYTES: usize = 4 << 20;

/// Statements of groups that are durable, in their order.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Waiting {
    pub(in crate::sqlite) statements: Vec<u8>,
    /// The number of the last group.
    pub(in crate::sqlite) number: i64,
}

impl Waiting {
    /// The next group.
    pub(in crate::sqlite) fn push(&mut self, statements: &[u8], number: i64) {
        self.statements.extend_from_slice(statements);
        self.number = number;
    }

    /// Takes over what follows, if there is anything.
    pub(in crate::sqlite) fn append(&mut self, later: &mut Self) {
        if later.statements.is_empty() {
            return;
        }
        if self.statements.is_empty() {
            // What is left to `later` is room for as much again.
            std::mem::swap(self, later);
        } else {
            self.push(&later.statements, later.number);
            later.clear();
        }
    }

    pub(in crate::sqlite) fn clear(&mut self) {
        self.statements.clear();
        self.statements.shrink_to(KEPT_BYTES);
    }
}

/// A statement that is to be run, by where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    table: Table,
    at: usize,
    is_needed: bool,
}

/// Runs encoded statements, and `after_each` of them something else.
///
/// # Errors
/// Those of SQLite.
pub(in crate::sqlite) fn run(
    conn: &Connection,
    statements: &[u8],
    after_each: impl FnMut(),
) -> rusqlite::Result<()> {
    let steps = steps(statements).ok_or(rusqlite::Error::InvalidQuery)?;
    take(conn, statements, &steps, after_each)
}

/// The order in which to run encoded statements; none when they make no sense.
///
/// Statements on the same table keep their order; those on different ones do not depend on each
/// other. A place in an inbox that is taken and left again was never there.
pub(super) fn steps(statements: &[u8]) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut placed: HashMap<i64, usize> = HashMap::new();
    let mut rest = statements;
    while !rest.is_empty() {
        let at = statements.len() - rest.len();
        let (statement, values) = Statement::decode(&mut rest)?;
        let mut step = Step {
            table: statement.table(),
            at,
            is_needed: true,
        };
        match (statement, &*values) {
            (Statement::Enqueue | Statement::EnqueueLeased, [_, Value::Integer(message), ..]) => {
                placed.insert(*message, steps.len());
            }
            (Statement::Leave, [_, _, Value::Integer(message)]) => {
                if let Some(place) = placed.remove(message) {
                    steps[place].is_needed = false;
                    step.is_needed = false;
                }
            }
            _ => {}
        }
        steps.push(step);
    }
    steps.retain(|step| step.is_needed);
    steps.sort_by_key(|step| step.table);
    Some(steps)
}

/// Runs the steps of these statements, and `after_each` of them something else.
pub(super) fn take(
    conn: &Connection,
    statements: &[u8],
    steps: &[Step],
    mut after_each: impl FnMut(),
) -> rusqlite::Result<()> {
    let mut last: Option<(Statement, CachedStatement<'_>)> = None;
    for step in steps {
        let decoded = Statement::decode(&mut &statements[step.at..]);
        let (statement, values) = decoded.ok_or(rusqlite::Error::InvalidQuery)?;
        let mut prepared = match last.take() {
            Some((same, prepared)) if same == statement => prepared,
            _ => conn.prepare_cached(statement.sql())?,
        };
        prepared.execute(rusqlite::params_from_iter(values.iter()))?;
        last = Some((statement, prepared));
        after_each();
    }
    Ok(())
}
