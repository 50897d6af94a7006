//! Where SQLite's side lies while nobody works with it, beside the groups that it has to catch up
//! with.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{
    StoreError, behind::Behind, database::Database, guard::Guard, lost_transaction, redo::Waiting,
};

/// Shared by the writer and the thread that brings SQLite up to what is durable.
#[derive(Debug)]
pub(super) struct Backlog {
    guard: Arc<Guard>,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug)]
struct State {
    place: Place,
    /// Groups that are durable and that the database has not heard of.
    waiting: Waiting,
    /// What ended the thread.
    failure: Option<StoreError>,
}

#[derive(Debug)]
enum Place {
    Here(Box<Database>),
    Lent,
    /// Whoever had it panicked.
    Lost,
}

impl Backlog {
    pub(super) fn new(database: Database, guard: Arc<Guard>) -> Self {
        Self {
            guard,
            state: Mutex::new(State {
                place: Place::Here(Box::new(database)),
                waiting: Waiting::default(),
                failure: None,
            }),
            returned: Condvar::new(),
        }
    }

    /// Leaves a durable group to whoever takes the database next.
    pub(super) fn push(&self, statements: &[u8], number: i64) {
        self.lock().waiting.push(statements, number);
    }

    /// Takes the database, once nobody else has it, with what it has to catch up with.
    ///
    /// # Errors
    /// When whoever had it did not bring it back.
    pub(super) fn take(&self) -> rusqlite::Result<Box<Database>> {
        let is_lent = |state: &mut State| matches!(state.place, Place::Lent);
        let waited = self.returned.wait_while(self.lock(), is_lent);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut state.place, Place::Lent) {
            Place::Here(mut database) => {
                database.take_over(&mut state.waiting);
                Ok(database)
            }
            lost => {
                state.place = lost;
                Err(lost_transaction())
            }
        }
    }

    /// Brings it back.
    pub(super) fn put(&self, database: Box<Database>) {
        self.return_as(Place::Here(database));
    }

    /// Lets SQLite commit what is durable.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] when it is to be tried again; any other error is final.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        let mut database = self.take()?;
        let lent = Lent(self);
        crate::failpoint!("store::before_settle");
        let mut settled = database.settle();
        if settled.is_ok() {
            crate::failpoint!("store::after_settle");
        } else if let Err(error) = database.roll_back() {
            tracing::error!(%error, "cannot undo what failed");
            settled = Err(error.into());
        }
        lent.back(database);
        settled
    }

    /// Syncs what is committed, if that is wanted; nobody has to do without the database meanwhile.
    ///
    /// # Errors
    /// When it is not known to be on disk.
    pub(super) fn sync(&self, behind: &Behind) -> Result<(), StoreError> {
        let Some(number) = behind.wants_sync() else {
            return Ok(());
        };
        self.guard.sync()?;
        behind.synced(number);
        Ok(())
    }

    /// Says what ended the thread; the writer ends with it.
    pub(super) fn fail(&self, error: StoreError) {
        self.lock().failure = Some(error);
    }

    /// Why nothing may be acknowledged any more.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.lock().failure.take()
    }

    fn return_as(&self, place: Place) {
        self.lock().place = place;
        self.returned.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says so when whoever has the database panics: nobody may wait for it for ever.
struct Lent<'a>(&'a Backlog);

impl Lent<'_> {
    fn back(self, database: Box<Database>) {
        self.0.put(database);
        std::mem::forget(self);
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.fail(lost_transaction().into());
        self.0.return_as(Place::Lost);
    }
}
