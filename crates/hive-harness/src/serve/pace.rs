//! When the loop may go on: holds of the host, waits of its own, and waiting for a login.

use std::time::Duration;

use hive_wire::{Timestamp, agent::RequeueReason, report::HarnessStatus};
use tokio::time::Instant;

use super::TurnLoop;
use crate::{
    engine::outcome::TurnOutcome,
    surface::{HostChannel, Surface},
    waiting::{failure_pause, limit_ends, outage_pause},
};

/// The longest single sleep: clocks jump and machines sleep, so the time is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A wait that the loop has taken upon itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnWait {
    until: Timestamp,
    /// The count of releases when it began: it is over when the count moves.
    releases: u64,
}

/// How many failures the parent is told of: a few at once, then one a minute.
#[derive(Debug)]
pub(crate) struct Complaints {
    left: u32,
    refilled: Instant,
    suppressed: u32,
}

impl Complaints {
    const MOST: u32 = 5;
    const REFILL: Duration = Duration::from_secs(60);

    /// Whether the parent may be told now, and of how many failures it was not told.
    pub(crate) fn take(&mut self) -> Option<u32> {
        while self.left < Self::MOST && self.refilled.elapsed() >= Self::REFILL {
            self.left += 1;
            self.refilled += Self::REFILL;
        }
        if self.left == 0 {
            self.suppressed += 1;
            return None;
        }
        if self.left == Self::MOST {
            self.refilled = Instant::now();
        }
        self.left -= 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl Default for Complaints {
    fn default() -> Self {
        Self {
            left: Self::MOST,
            refilled: Instant::now(),
            suppressed: 0,
        }
    }
}

impl<S: Surface + HostChannel> TurnLoop<'_, S> {
    /// Waits while there is a reason to begin no turn.
    pub(super) async fn wait_out(&mut self) {
        let mut told = None;
        let mut told_pause = None;
        while !self.orders.is_stopping() {
            self.give_up_interrupted().await;
            let now = Timestamp::now();
            let releases = self.orders.releases();
            let own = self
                .own_wait
                .filter(|w| w.until > now && w.releases == releases);
            if own.is_none() && self.own_wait.take().is_some() {
                self.bus.set_status(HarnessStatus::Online, None);
            }
            let held = self.orders.held();
            if let Some(hold) = &held
                && told.as_ref() != Some(hold)
            {
                let (until, reason) = (hold.until, &hold.reason);
                self.bus.note(&format!("held until {until}: {reason}"));
                told = Some(hold.clone());
            }
            let until = own.map(|own| own.until).max(held.map(|hold| hold.until));
            if let Some(reason) = self.orders.paused() {
                self.rest(&reason, &mut told_pause).await;
                continue;
            }
            let Some(until) = until else {
                return;
            };
            self.orders
                .changed_within(until.until(now).min(LOOK_AGAIN))
                .await;
        }
    }

    /// Gives back the messages of a turn that was stopped for a pause, be it over by now: nobody
    /// is going to write what the turn could be taken up with.
    async fn give_up_interrupted(&mut self) {
        if self.orders.take_give_back()
            && let Some((turn, _)) = self.interrupted.take()
        {
            self.give_back(&turn, RequeueReason::Interrupted).await;
        }
    }

    /// Waits while paused.
    async fn rest(&mut self, reason: &str, told: &mut Option<String>) {
        if told.as_deref() != Some(reason) {
            self.bus.note(&format!("paused: {reason}"));
            *told = Some(reason.to_owned());
        }
        self.orders.changed().await;
    }

    /// Sees to what an outcome means for the time to come.
    pub(crate) async fn wait_after(&mut self, outcome: &TurnOutcome) {
        match outcome {
            TurnOutcome::Ok | TurnOutcome::Compacted => {
                self.outages = 0;
                self.failures = 0;
            }
            TurnOutcome::RateLimited { .. } | TurnOutcome::Unavailable { .. } => {
                self.put_off(outcome);
            }
            TurnOutcome::AuthFailed { why } => {
                if let Err(error) = self.sentinel.set(why) {
                    self.bus
                        .note(&format!("cannot note that a login is needed: {error}"));
                }
                self.wait_for_login().await;
            }
            TurnOutcome::Failed { .. } | TurnOutcome::TooLong | TurnOutcome::Interrupted => {
                let pause = failure_pause(self.failures, &self.environment.pace);
                self.failures = self.failures.saturating_add(1);
                self.pause(pause).await;
            }
        }
    }

    /// Takes a wait upon itself when the service refuses or is not to be had; no other outcome
    /// asks for one.
    pub(crate) fn put_off(&mut self, outcome: &TurnOutcome) {
        let now = Timestamp::now();
        let pace = &self.environment.pace;
        let until = match outcome {
            TurnOutcome::RateLimited { resets_at } => {
                let until = limit_ends(*resets_at, now, pace);
                self.bus.set_status(HarnessStatus::RateLimited, Some(until));
                until
            }
            TurnOutcome::Unavailable { .. } => {
                let mut jitter = [128];
                if getrandom::fill(&mut jitter).is_err() {
                    tracing::debug!(
                        "no randomness: agents that failed together may go on together"
                    );
                }
                let until = now.plus(outage_pause(self.outages, jitter[0], pace));
                self.outages = self.outages.saturating_add(1);
                self.bus.set_status(HarnessStatus::Unavailable, None);
                until
            }
            TurnOutcome::Ok
            | TurnOutcome::Compacted
            | TurnOutcome::TooLong
            | TurnOutcome::AuthFailed { .. }
            | TurnOutcome::Interrupted
            | TurnOutcome::Failed { .. } => return,
        };
        self.own_wait = Some(OwnWait {
            until,
            releases: self.orders.releases(),
        });
    }

    /// Parks until somebody has logged in (T7, T8): by the login of the control channel, or by
    /// changing the credentials in any other way. Nothing tells of the latter, so it is looked for.
    pub(super) async fn wait_for_login(&mut self) {
        self.bus.set_status(HarnessStatus::NeedsLoginIdle, None);
        self.bus
            .note("the credentials do not work: waiting for a login");
        // A login from before the failure does not count.
        self.orders.take_logged_in();
        loop {
            if self.orders.is_stopping() {
                return;
            }
            if self.orders.take_logged_in() || self.sentinel.credentials_moved() {
                break;
            }
            self.orders
                .changed_within(self.environment.pace.login_look)
                .await;
        }
        if let Err(error) = self.sentinel.clear() {
            self.bus.note(&format!(
                "cannot clear the note that a login is needed: {error}"
            ));
        }
        self.bus.note("the credentials have changed: going on");
        self.bus.set_status(HarnessStatus::Online, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn t11_the_parent_is_told_of_a_few_failures_and_then_one_a_minute() {
        let mut complaints = Complaints::default();
        for _ in 0..5 {
            assert_eq!(complaints.take(), Some(0));
        }
        assert_eq!((complaints.take(), complaints.take()), (None, None));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(
            complaints.take(),
            Some(2),
            "and of those it was not told of"
        );
        assert_eq!(complaints.take(), None);
    }
}
