//! What readers see while SQLite is behind the redo journal: they wait until it has caught up with
//! what was durable when they came, so that nobody misses what has been answered.

use std::{
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

/// Shared by the writer, the thread that settles and the readers.
#[derive(Debug, Default)]
pub(super) struct Behind {
    /// Whether `committed` is less than `durable`: a glance without the lock.
    is_behind: AtomicBool,
    state: Mutex<State>,
    caught_up: Condvar,
    is_due: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Numbers of the last group that is durable, and of the last that SQLite has committed.
    durable: i64,
    committed: i64,
    /// Those of the last that SQLite has synced, and of the last that it is to sync.
    synced: i64,
    sync_up_to: i64,
    /// How often SQLite found no room to commit, and whether it was so the last time.
    without_room: u64,
    is_out_of_room: bool,
    /// Whether a reader waits.
    is_asked: bool,
    /// Whether the thread that settles is to end.
    is_dismissed: bool,
    is_over: bool,
}

impl Behind {
    /// Nothing is behind group `number`.
    pub(super) fn new(number: i64) -> Self {
        let state = State {
            durable: number,
            committed: number,
            synced: number,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            ..Self::default()
        }
    }

    /// Everything up to this group is durable, and readers do not see it yet.
    pub(super) fn durable(&self, number: i64) {
        let mut state = self.lock();
        state.durable = state.durable.max(number);
        let is_behind = state.committed < state.durable;
        let was_behind = self.is_behind.swap(is_behind, Ordering::AcqRel);
        drop(state);
        // Only the first one: waking costs a system call.
        if is_behind && !was_behind {
            self.is_due.notify_one();
        }
    }

    /// Readers see everything up to this group.
    pub(super) fn committed(&self, number: i64) {
        let mut state = self.lock();
        state.committed = number;
        state.is_out_of_room = false;
        state.durable = state.durable.max(number);
        self.is_behind
            .store(state.committed < state.durable, Ordering::Release);
        drop(state);
        self.caught_up.notify_all();
    }

    /// SQLite found no room to commit: who waits for it may wait for long.
    pub(super) fn has_no_room(&self) {
        let mut state = self.lock();
        state.without_room += 1;
        // Somebody else may have found room meanwhile.
        state.is_out_of_room = state.committed < state.durable;
        drop(state);
        self.caught_up.notify_all();
    }

    /// Whether SQLite has found no room to commit since it last did.
    pub(super) fn is_out_of_room(&self) -> bool {
        self.lock().is_out_of_room
    }

    /// SQLite has synced everything up to this group.
    pub(super) fn synced(&self, number: i64) {
        let mut state = self.lock();
        state.synced = state.synced.max(number);
    }

    /// The last group that SQLite has synced.
    pub(super) fn last_synced(&self) -> i64 {
        self.lock().synced
    }

    /// Wants everything up to this group synced.
    pub(super) fn ask_for_sync(&self, number: i64) {
        let mut state = self.lock();
        if state.sync_up_to >= number {
            return;
        }
        state.sync_up_to = number;
        state.is_asked = true;
        drop(state);
        self.is_due.notify_all();
    }

    /// The last group that is committed, when SQLite is to sync it.
    pub(super) fn wants_sync(&self) -> Option<i64> {
        let state = self.lock();
        (state.synced < state.sync_up_to).then_some(state.committed)
    }

    /// How many groups readers do not see yet.
    pub(super) fn count(&self) -> u32 {
        let state = self.lock();
        u32::try_from(state.durable - state.committed).unwrap_or(u32::MAX)
    }

    /// Waits until SQLite has been behind for as long as `patience`, or somebody asks; false when
    /// nobody needs to wait any more.
    pub(super) fn wait_until_due(&self, patience: Duration) -> bool {
        let is_idle = |state: &mut State| !state.is_dismissed && state.durable <= state.committed;
        let idle = self.is_due.wait_while(self.lock(), is_idle);
        let state = idle.unwrap_or_else(PoisonError::into_inner);
        let is_early = |state: &mut State| !state.is_dismissed && !state.is_asked;
        let early = self.is_due.wait_timeout_while(state, patience, is_early);
        let (mut state, _) = early.unwrap_or_else(PoisonError::into_inner);
        state.is_asked = false;
        !state.is_dismissed
    }

    /// Ends what waits until SQLite is behind.
    pub(super) fn dismiss_settler(&self) {
        self.lock().is_dismissed = true;
        self.is_due.notify_all();
    }

    /// The writer is gone: what it has not committed is for the next start.
    fn over(&self) {
        self.lock().is_over = true;
        self.caught_up.notify_all();
    }

    /// Waits until everything that is durable now can be seen. On a full disk a view of what SQLite
    /// has committed so far must do: nobody knows how long that lasts.
    pub(super) fn catch_up(&self) {
        if !self.is_behind.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        if state.is_out_of_room {
            // It is tried again every second, whoever asks.
            return;
        }
        let (wanted, without_room) = (state.durable, state.without_room);
        state.is_asked = true;
        self.is_due.notify_all();
        let is_missing = |state: &mut State| {
            let is_hopeless = state.is_over || state.without_room > without_room;
            state.committed < wanted && !is_hopeless
        };
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
