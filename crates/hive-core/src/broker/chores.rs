//! Work that nobody waits for: indexing who wrote to whom, and forgetting what is old.
//!
//! A chore is a short group of its own. It runs when nothing has come for a moment; under constant
//! load the indexing still takes a small step now and then, so that the tail that readers scan
//! stays short.

use std::time::{Duration, Instant};

use hive_store::{
    Refusal,
    sqlite::{Retention, Tx},
};

/// How long it must be quiet before a chore begins.
const QUIET: Duration = Duration::from_millis(250);
/// How many messages one step indexes.
const INDEX_STEP: u32 = 512;
/// From this many on, indexing no longer waits for a quiet moment.
const INDEX_NOW: u64 = 8 * INDEX_STEP as u64;
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

    /// Whether something should be done now.
    pub(super) fn is_due(&self) -> bool {
        self.unindexed >= INDEX_NOW || self.wake_at().is_some_and(|at| at <= Instant::now())
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
            self.unindexed = tx.index_correspondence(INDEX_STEP)?;
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
