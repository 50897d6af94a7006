//! What readers see while SQLite is behind the redo journal: they wait until it has caught up with
//! what was durable when they came, so that nobody misses what has been answered.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How long a reader waits at most. Only a disk that stands still makes it that long, and then a
/// view of a moment ago is better than none.
const PATIENCE: Duration = Duration::from_secs(5);

type Ask = Box<dyn Fn() + Send + Sync>;

/// Shared by the writer and the readers.
#[derive(Default)]
pub(super) struct Behind {
    /// Whether `committed` is less than `durable`: a glance without the lock.
    is_behind: AtomicBool,
    state: Mutex<State>,
    caught_up: Condvar,
}

#[derive(Default)]
struct State {
    /// Numbers of the last group that is durable, and of the last that SQLite has committed.
    durable: i64,
    committed: i64,
    /// Asks the writer to catch up.
    ask: Option<Ask>,
    is_over: bool,
}

impl Behind {
    /// Everything up to this group is durable, and readers do not see it yet.
    pub(super) fn durable(&self, number: i64) {
        self.lock().durable = number;
        self.is_behind.store(true, Ordering::Release);
    }

    /// Readers see everything up to this group, which is all there is.
    pub(super) fn committed(&self, number: i64) {
        if !self.is_behind.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        state.committed = number;
        self.is_behind.store(false, Ordering::Release);
        drop(state);
        self.caught_up.notify_all();
    }

    /// The writer is gone: what it has not committed is for the next start.
    fn over(&self) {
        self.lock().is_over = true;
        self.caught_up.notify_all();
    }

    pub(super) fn ask_by(&self, ask: Ask) {
        self.lock().ask = Some(ask);
    }

    /// Waits until everything that is durable now can be seen.
    pub(super) fn catch_up(&self) {
        if !self.is_behind.load(Ordering::Acquire) {
            return;
        }
        let state = self.lock();
        let wanted = state.durable;
        if let Some(ask) = &state.ask {
            ask();
        }
        let is_missing = |state: &mut State| state.committed < wanted && !state.is_over;
        let waited = self
            .caught_up
            .wait_timeout_while(state, PATIENCE, is_missing);
        if waited.is_ok_and(|(_, waited)| waited.timed_out()) {
            tracing::warn!("the writer stands still; readers see how it was a moment ago");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's side; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct Writing(pub(super) Arc<Behind>);

impl Deref for Writing {
    type Target = Behind;

    fn deref(&self) -> &Behind {
        &self.0
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.over();
    }
}

impl fmt::Debug for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behind")
            .field("is_behind", &self.is_behind)
            .finish_non_exhaustive()
    }
}
