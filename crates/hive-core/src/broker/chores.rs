//! Work that nobody waits for: indexing who wrote to whom, and forgetting what is old.
//!
//! A chore is a short group of its own. It runs when nothing has come for a moment; under constant
//! load the indexing still takes a large step now and then, so that the tail that readers scan
//! stays bounded.

use std::time::{Duration, Instant};

use hive_store::{
    Refusal,
    sqlite::{Retention, Tx},
};

/// How long it must be quiet before a chore begins.
const QUIET: Duration = Duration::from_millis(250);
/// How many messages one step indexes in a quiet moment.
const INDEX_STEP: u32 = 512;
/// How many it indexes when it cannot wait for one. Larger, because a step writes a page for every
/// party that took part, however many messages they had.
const LARGE_INDEX_STEP: u32 = 4_096;
/// From this many on, indexing no longer waits for a quiet moment.
const INDEX_NOW: u64 = 100_000;
/// How long a chore that failed waits for its next try.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How many rows one step forgets.
const PRUNE_STEP: u32 = 200;
/// How often to look for what is old.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(super) struct Chores {
    retention: Retention,
    unindexed: u64,
    prune_at: Instant,
    last_work: Instant,
}

impl Chores {
    pub(super) fn new(retention: Retention) -> Self {
        let now = Instant::now();
        // The first look tells how much there is to index.
        Self {
            retention,
            unindexed: 1,
            prune_at: now + QUIET,
            last_work: now,
        }
    }

    /// Notes that a group with so many new messages was committed.
    pub(super) fn worked(&mut self, sent: u32) {
        self.unindexed += u64::from(sent);
        self.last_work = Instant::now();
    }

    /// Something failed: not again right away.
    pub(super) fn postpone(&mut self) {
        self.last_work = Instant::now() + PAUSE_AFTER_FAILURE;
    }

    /// Whether something should be done now.
    pub(super) fn is_due(&self) -> bool {
        let now = Instant::now();
        let is_urgent = self.unindexed >= INDEX_NOW && self.last_work <= now;
        is_urgent || self.wake_at().is_some_and(|at| at <= now)
    }

    /// When there will be something to do, if it stays quiet.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let quiet = self.last_work + QUIET;
        if self.unindexed > 0 {
            Some(quiet)
        } else {
            Some(self.prune_at.max(quiet))
        }
    }

    /// Does one step.
    pub(super) fn step(&mut self, tx: &mut Tx<'_>) -> Result<(), Refusal> {
        if self.unindexed > 0 {
            let is_urgent = self.unindexed >= INDEX_NOW;
            let step = if is_urgent {
                LARGE_INDEX_STEP
            } else {
                INDEX_STEP
            };
            self.unindexed = tx.index_correspondence(step)?;
            return Ok(());
        }
        if self.prune_at <= Instant::now() {
            let pruned = tx.prune(self.retention, PRUNE_STEP)?;
            let pause = if pruned.more { QUIET / 5 } else { PRUNE_EVERY };
            self.prune_at = Instant::now() + pause;
            if pruned.messages > 0 {
                tracing::debug!(?pruned, "forgot what was old");
            }
        }
        Ok(())
    }
}
