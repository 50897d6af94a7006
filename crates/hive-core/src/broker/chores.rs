//! Work that nobody waits for: indexing who wrote to whom, and forgetting what is old.
//!
//! A chore is a short group of its own. It runs when nothing has come for a moment. On a hive that is
//! never quiet, the indexing still takes a large step now and then, so that the tail that readers
//! scan stays bounded, and what is old is forgotten a minute later than it would have been.

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
/// How long forgetting waits for a quiet moment at most.
const PRUNE_PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two steps of forgetting while nobody waits.
const PRUNE_PAUSE: Duration = Duration::from_millis(50);
/// The same while there is work, which every step holds up.
const BUSY_PRUNE_PAUSE: Duration = QUIET;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chore {
    /// Index so many messages.
    Index(u32),
    /// Forget what is old.
    Prune,
}

#[derive(Debug, Clone)]
pub(super) struct Chores {
    retention: Retention,
    unindexed: u64,
    /// When to look for what is old, if it is quiet then.
    prune_at: Instant,
    /// When to do so whether it is quiet or not.
    prune_by: Instant,
    last_work: Instant,
    /// Not to be tried before, because it failed.
    rest_until: Instant,
}

impl Chores {
    pub(super) fn new(retention: Retention, now: Instant) -> Self {
        // The first look tells how much there is to index.
        Self {
            retention,
            unindexed: 1,
            prune_at: now + QUIET,
            prune_by: now + PRUNE_PATIENCE,
            last_work: now,
            rest_until: now,
        }
    }

    /// Notes that a group with so many new messages was committed.
    pub(super) fn worked(&mut self, sent: u32, now: Instant) {
        self.unindexed += u64::from(sent);
        self.last_work = now;
    }

    /// Something failed: not again right away.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.rest_until = now + PAUSE_AFTER_FAILURE;
    }

    /// Whether something should be done now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due(now).is_some()
    }

    /// When there will be something to do, if it stays quiet.
    pub(super) fn wake_at(&self) -> Instant {
        let quiet = self.last_work + QUIET;
        let when_quiet = if self.unindexed > 0 {
            quiet
        } else {
            self.prune_at.max(quiet)
        };
        let anyway = self.prune_at.max(self.prune_by);
        when_quiet.min(anyway).max(self.rest_until)
    }

    /// Does one step.
    pub(super) fn step(&mut self, tx: &mut Tx<'_>) -> Result<(), Refusal> {
        match self.due(Instant::now()) {
            Some(Chore::Index(step)) => self.unindexed = tx.index_correspondence(step)?,
            Some(Chore::Prune) => {
                let pruned = tx.prune(self.retention, PRUNE_STEP)?;
                self.pruned(pruned.more, Instant::now());
                if pruned.messages > 0 {
                    tracing::debug!(?pruned, "forgot what was old");
                }
            }
            None => {}
        }
        Ok(())
    }

    fn due(&self, now: Instant) -> Option<Chore> {
        if now < self.rest_until {
            return None;
        }
        // Before the indexing, which there is no end of while messages are sent.
        if self.prune_at.max(self.prune_by) <= now {
            return Some(Chore::Prune);
        }
        if self.unindexed >= INDEX_NOW {
            return Some(Chore::Index(LARGE_INDEX_STEP));
        }
        if !self.is_quiet(now) {
            return None;
        }
        if self.unindexed > 0 {
            return Some(Chore::Index(INDEX_STEP));
        }
        (self.prune_at <= now).then_some(Chore::Prune)
    }

    /// Notes that a step of forgetting was made, and whether it left something.
    fn pruned(&mut self, more: bool, now: Instant) {
        if !more {
            self.prune_at = now + PRUNE_EVERY;
            self.prune_by = self.prune_at + PRUNE_PATIENCE;
            return;
        }
        // `prune_by` stays: whoever has waited long enough does not wait anew for every step.
        self.prune_at = now
            + if self.is_quiet(now) {
                PRUNE_PAUSE
            } else {
                BUSY_PRUNE_PAUSE
            };
    }

    fn is_quiet(&self, now: Instant) -> bool {
        self.last_work + QUIET <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP_EVERY: Duration = Duration::from_millis(10);

    fn chores(now: Instant) -> Chores {
        let messages = Duration::from_secs(60 * 60);
        Chores::new(Retention { messages }, now)
    }

    /// Lets a group of `sent` messages come every 10 ms, and does what is due after each; when
    /// something was forgotten, since the beginning. There is something to forget in `steps` steps.
    fn busy(
        chores: &mut Chores,
        from: Instant,
        lasts: Duration,
        sent: u32,
        steps: usize,
    ) -> Vec<Duration> {
        let mut forgotten = Vec::new();
        let mut now = from;
        while now < from + lasts {
            now += GROUP_EVERY;
            chores.worked(sent, now);
            let due = chores.due(now);
            assert_eq!(due.is_some(), chores.is_due(now));
            match due {
                Some(Chore::Index(step)) => {
                    chores.unindexed = chores.unindexed.saturating_sub(u64::from(step));
                }
                Some(Chore::Prune) => {
                    forgotten.push(now - from);
                    chores.pruned(forgotten.len() < steps, now);
                }
                None => {}
            }
        }
        forgotten
    }

    #[test]
    fn work_without_a_pause_holds_up_forgetting_for_a_minute_at_most() {
        for sent in [0, 1, 1_000] {
            let began = Instant::now();
            let mut chores = chores(began);
            let forgotten = busy(&mut chores, began, PRUNE_PATIENCE * 2, sent, 3);
            let expected = [0, 1, 2].map(|step| PRUNE_PATIENCE + step * BUSY_PRUNE_PAUSE);
            assert_eq!(forgotten, expected, "{sent} messages in a group");
            assert!(chores.unindexed < INDEX_NOW, "{}", chores.unindexed);
        }
    }

    #[test]
    fn the_next_look_comes_after_an_hour_and_waits_for_a_minute_again() {
        let began = Instant::now();
        let mut chores = chores(began);
        let forgotten = busy(&mut chores, began, PRUNE_EVERY + PRUNE_PATIENCE * 3, 1, 1);
        let next = PRUNE_PATIENCE + PRUNE_EVERY + PRUNE_PATIENCE;
        assert_eq!(forgotten, [PRUNE_PATIENCE, next]);
    }

    #[test]
    fn a_quiet_moment_is_taken_at_once_and_first_to_index() {
        let began = Instant::now();
        let mut chores = chores(began);
        assert_eq!(chores.due(began), None);
        let quiet = began + QUIET;
        assert_eq!(chores.wake_at(), quiet);
        assert_eq!(chores.due(quiet), Some(Chore::Index(INDEX_STEP)));
        chores.unindexed = 0;
        assert_eq!(chores.due(quiet), Some(Chore::Prune));
        chores.pruned(true, quiet);
        assert_eq!(chores.due(quiet), None);
        assert_eq!(chores.wake_at(), quiet + PRUNE_PAUSE);
        assert_eq!(chores.due(quiet + PRUNE_PAUSE), Some(Chore::Prune));
        chores.pruned(false, quiet);
        assert_eq!(chores.wake_at(), quiet + PRUNE_EVERY);
    }

    #[test]
    fn what_failed_rests_although_work_goes_on() {
        let began = Instant::now();
        let mut chores = chores(began);
        let overdue = began + PRUNE_PATIENCE;
        chores.unindexed = INDEX_NOW;
        chores.postpone(overdue);
        chores.worked(1, overdue);
        let rested = overdue + PAUSE_AFTER_FAILURE;
        assert_eq!(chores.due(rested - GROUP_EVERY), None);
        assert_eq!(chores.wake_at(), rested);
        assert_eq!(chores.due(rested), Some(Chore::Prune));
    }
}
