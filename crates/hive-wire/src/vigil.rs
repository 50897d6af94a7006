//! Staying awake for a moment where what is waited for comes that fast.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use tokio::task::yield_now;

/// Whether it is worthwhile to stay awake for a moment instead of falling asleep and being woken,
/// which takes longer than answering a request does. It is when what was waited for last came within
/// a moment; whoever waits now and then, or for long, sleeps at once.
#[derive(Debug)]
pub struct Vigil {
    moment: Duration,
    is_worthwhile: AtomicBool,
}

impl Vigil {
    /// One that lasts for a moment at most. With a single core there are none: staying awake would
    /// hold up whoever is waited for.
    pub fn of(moment: Duration) -> Self {
        let has_cores = available_parallelism().is_ok_and(|cores| cores.get() > 1);
        Self {
            moment: if has_cores { moment } else { Duration::ZERO },
            is_worthwhile: AtomicBool::new(false),
        }
    }

    /// Stays awake until `is_over`, or until the moment that began at `since` has passed; not at all
    /// where it is not worthwhile. The other tasks of this thread go on, and whoever else wants this
    /// core gets it.
    pub async fn keep(&self, since: Instant, mut is_over: impl FnMut() -> bool) {
        if !self.is_worthwhile.load(Ordering::Relaxed) {
            return;
        }
        while !is_over() && since.elapsed() < self.moment {
            thread::yield_now();
            yield_now().await;
        }
    }

    /// What was waited for since then has come.
    pub fn ended(&self, since: Instant) {
        let is_worthwhile = since.elapsed() < self.moment;
        self.is_worthwhile.store(is_worthwhile, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn with_cores(moment: Duration) -> Vigil {
        Vigil {
            moment,
            is_worthwhile: AtomicBool::new(false),
        }
    }

    /// How often it looked before it was over at the third look, or gave up.
    async fn looks(vigil: &Vigil, since: Instant) -> u32 {
        let mut looks = 0;
        let is_over = || {
            looks += 1;
            looks == 3
        };
        vigil.keep(since, is_over).await;
        looks
    }

    #[tokio::test]
    async fn staying_awake_is_for_what_came_fast_the_last_time() {
        let vigil = with_cores(LONG);
        let now = Instant::now();
        assert_eq!(looks(&vigil, now).await, 0, "nothing came yet");
        vigil.ended(now);
        assert_eq!(looks(&vigil, now).await, 3);

        let brief = with_cores(Duration::ZERO);
        brief.ended(now);
        assert_eq!(looks(&brief, now).await, 0, "it came after the moment");
    }

    #[tokio::test]
    async fn a_vigil_lasts_for_a_moment_only() {
        let vigil = with_cores(Duration::from_millis(20));
        vigil.ended(Instant::now());
        let since = Instant::now();
        vigil.keep(since, || false).await;
        assert!(since.elapsed() >= Duration::from_millis(20));
    }
}
