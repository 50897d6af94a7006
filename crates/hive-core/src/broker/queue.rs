//! Jobs on their way to the broker's thread. Bounded by what connections may have in flight.

use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hive_wire::{alarm::Alarm, vigil::Vigil};
use tokio::{sync::Notify, task::yield_now};

use super::{Job, stopping};

/// How often the connections are heard before a group begins, as long as each time brings more.
const HEARINGS: u32 = 4;
/// How long the broker stays awake for the next job: a tool call through `hive mcp` comes back
/// within that.
const MOMENT: Duration = Duration::from_micros(200);

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
    vigil: Vigil,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Notify::default(),
            vigil: Vigil::of(MOMENT),
        }
    }
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Box<dyn Job>>,
    is_stopping: bool,
    /// Whether the broker waits; waking it may cost a system call.
    is_asleep: bool,
}

impl Waiting {
    fn is_quiet(&self) -> bool {
        self.jobs.is_empty() && !self.is_stopping
    }
}

/// What the broker found when it looked for work.
pub(super) enum Found {
    Jobs,
    Nothing,
    Stop,
}

impl Queue {
    pub(super) fn push(&self, job: Box<dyn Job>) {
        let mut waiting = self.lock();
        if waiting.is_stopping {
            drop(waiting);
            job.refuse(stopping());
            return;
        }
        waiting.jobs.push(job);
        let is_asleep = std::mem::take(&mut waiting.is_asleep);
        drop(waiting);
        if is_asleep {
            self.changed.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// Moves everything that waits into `jobs`, sleeping until there is something or `until`.
    pub(super) async fn take(
        &self,
        jobs: &mut Vec<Box<dyn Job>>,
        until: Option<Instant>,
        alarm: &mut Alarm,
    ) -> Found {
        loop {
            self.gather().await;
            let idle_since = Instant::now();
            let has_work = || !self.lock().is_quiet();
            if has_work() {
                self.vigil.ended(idle_since);
            } else {
                self.vigil.keep(idle_since, has_work).await;
                if has_work() {
                    self.vigil.ended(idle_since);
                    // It may not have come alone.
                    self.gather().await;
                }
            }
            match self.take_now(jobs) {
                Some(found) => return found,
                None if !self.sleep(until, alarm).await => return Found::Nothing,
                None => self.vigil.ended(idle_since),
            }
        }
    }

    /// Hears the connections, which live on the same thread, for as long as they bring more: so
    /// that a flood of jobs does not silence them, and one sync serves everybody who is ready. It
    /// never waits for anybody: a job that comes alone is taken up at once.
    async fn gather(&self) {
        let mut heard = 0;
        for _ in 0..HEARINGS {
            let waiting = self.lock().jobs.len();
            if waiting == heard {
                return;
            }
            heard = waiting;
            yield_now().await;
        }
    }

    /// The same without waiting; none when nothing is there.
    pub(super) fn take_now(&self, jobs: &mut Vec<Box<dyn Job>>) -> Option<Found> {
        let mut waiting = self.lock();
        if !waiting.jobs.is_empty() {
            std::mem::swap(&mut waiting.jobs, jobs);
            return Some(Found::Jobs);
        }
        if waiting.is_stopping {
            return Some(Found::Stop);
        }
        waiting.is_asleep = true;
        None
    }

    /// Waits for a change; false when `until` comes first.
    async fn sleep(&self, until: Option<Instant>, alarm: &mut Alarm) -> bool {
        let Some(until) = until else {
            self.changed.notified().await;
            return true;
        };
        let changed = pin!(self.changed.notified());
        // Both arms are cancel-safe: a notice that is not taken stays, and the alarm stays set.
        tokio::select! {
            biased;
            () = changed => true,
            () = alarm.ring(until.into()) => {
                self.lock().is_asleep = false;
                false
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleeping_ends_in_time_and_by_a_change() {
        let (queue, mut alarm) = (Queue::default(), Alarm::default());
        let soon = Instant::now() + Duration::from_millis(5);
        assert!(!queue.sleep(Some(soon), &mut alarm).await);
        queue.stop();
        let late = Instant::now() + Duration::from_secs(600);
        assert!(queue.sleep(Some(late), &mut alarm).await);
        let mut jobs = Vec::new();
        let found = queue.take(&mut jobs, Some(late), &mut alarm);
        assert!(matches!(found.await, Found::Stop));
    }
}
