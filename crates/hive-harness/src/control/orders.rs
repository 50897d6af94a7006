//! What the operator and the host want of the loop: orders that stand until they are carried out.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hive_wire::{ControlId, Timestamp, grants::Groups};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::engine::TurnHandle;

/// The most compactions that wait to be carried out; more are one anyway.
const MAX_COMPACTIONS: usize = 16;

/// The orders of one harness.
#[derive(Debug, Default)]
pub struct Orders {
    inner: Mutex<Inner>,
    /// Says that an order has come that a waiting loop cares about.
    changed: Notify,
    stop: CancellationToken,
    stop_now: CancellationToken,
}

#[derive(Debug, Default)]
struct Inner {
    turn: TurnNow,
    compactions: VecDeque<ControlId>,
    wants_new_session: bool,
    hold: Option<Hold>,
    /// Why no turn begins until further notice.
    pause: Option<String>,
    /// The turn that runs was stopped for a pause: it is not to be taken up again.
    gives_back: bool,
    releases: u64,
    has_logged_in: bool,
    tool_groups: Option<Groups>,
}

/// The running turn, as far as an interrupt needs to know it.
#[derive(Debug, Default)]
enum TurnNow {
    /// None runs.
    #[default]
    None,
    /// One runs; its engine may be between two attempts.
    Running(Option<TurnHandle>),
    /// It was interrupted.
    Interrupted,
}

/// A time before which no turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Until when.
    pub until: Timestamp,
    /// Why.
    pub reason: String,
}

impl Orders {
    /// Interrupts the running turn.
    ///
    /// # Errors
    /// When there is none.
    pub fn interrupt(&self) -> Result<String, String> {
        let mut inner = self.lock();
        match mem::replace(&mut inner.turn, TurnNow::Interrupted) {
            TurnNow::None => {
                inner.turn = TurnNow::None;
                Err("no turn is running".to_owned())
            }
            TurnNow::Running(handle) => {
                if let Some(handle) = handle {
                    handle.interrupt();
                }
                Ok("the turn is being stopped".to_owned())
            }
            TurnNow::Interrupted => Ok("the turn is being stopped already".to_owned()),
        }
    }

    /// A turn begins: from now on it can be interrupted.
    pub fn turn_begins(&self) {
        self.lock().turn = TurnNow::Running(None);
    }

    /// An engine runs for it.
    pub fn engine_runs(&self, handle: &TurnHandle) {
        let mut inner = self.lock();
        match &mut inner.turn {
            TurnNow::Running(slot) => *slot = Some(handle.clone()),
            TurnNow::Interrupted => handle.interrupt(),
            TurnNow::None => {}
        }
    }

    /// Its engine has ended; the turn may go on with another.
    pub fn engine_ended(&self) {
        if let TurnNow::Running(slot) = &mut self.lock().turn {
            *slot = None;
        }
    }

    /// Whether the operator has interrupted the turn that runs.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.lock().turn, TurnNow::Interrupted)
    }

    /// The turn is over.
    pub fn turn_ends(&self) {
        self.lock().turn = TurnNow::None;
    }

    /// Asks for a compaction, to be answered under this number.
    ///
    /// # Errors
    /// When too many are asked for already; nobody will answer this one.
    pub fn compact(&self, request: ControlId) -> Result<(), String> {
        let mut inner = self.lock();
        if inner.compactions.len() >= MAX_COMPACTIONS {
            return Err(format!(
                "{MAX_COMPACTIONS} compactions are asked for already"
            ));
        }
        inner.compactions.push_back(request);
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the compactions that are asked for.
    pub fn take_compactions(&self) -> Vec<ControlId> {
        self.lock().compactions.drain(..).collect()
    }

    /// Whether a compaction is asked for.
    pub fn wants_compaction(&self) -> bool {
        !self.lock().compactions.is_empty()
    }

    /// Lets the next turn begin a new session (T19).
    pub fn new_session(&self) {
        self.lock().wants_new_session = true;
    }

    /// Takes that wish.
    pub fn take_new_session(&self) -> bool {
        mem::take(&mut self.lock().wants_new_session)
    }

    /// Lets the next turn have the tools of these groups (C14). The newest word counts.
    pub fn set_tool_groups(&self, groups: Groups) {
        self.lock().tool_groups = Some(groups);
    }

    /// Takes the groups that the host has named since the last turn.
    pub fn take_tool_groups(&self) -> Option<Groups> {
        self.lock().tool_groups.take()
    }

    /// Begins no turn before `until`. A later hold takes the place of an earlier one.
    pub fn hold(&self, until: Timestamp, reason: &str) {
        self.lock().hold = Some(Hold {
            until,
            reason: hive_wire::text::shorten(reason, 200),
        });
        self.changed.notify_one();
    }

    /// Ends every hold, and every wait that the loop took upon itself.
    pub fn release(&self) {
        let mut inner = self.lock();
        inner.hold = None;
        inner.releases += 1;
        drop(inner);
        self.changed.notify_one();
    }

    /// Begins no turn until [`Self::resume`]; with `now` the turn that runs is stopped and its
    /// messages are given back.
    pub fn pause(&self, reason: &str, now: bool) {
        if now && self.interrupt().is_ok() {
            self.lock().gives_back = true;
        }
        self.lock().pause = Some(hive_wire::text::shorten(reason, 200));
        self.changed.notify_one();
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.lock().pause = None;
        self.changed.notify_one();
    }

    /// Why no turn begins until further notice.
    pub fn paused(&self) -> Option<String> {
        self.lock().pause.clone()
    }

    /// Takes the wish that an interrupted turn gives its messages back.
    pub fn take_give_back(&self) -> bool {
        mem::take(&mut self.lock().gives_back)
    }

    /// The hold in force.
    pub fn held(&self) -> Option<Hold> {
        let mut inner = self.lock();
        let now = Timestamp::now();
        inner.hold.take_if(|hold| hold.until <= now);
        inner.hold.clone()
    }

    /// How often waits were ended: a wait is over when this moves.
    pub fn releases(&self) -> u64 {
        self.lock().releases
    }

    /// Somebody has logged in.
    pub fn logged_in(&self) {
        self.lock().has_logged_in = true;
        self.changed.notify_one();
    }

    /// Takes that news.
    pub fn take_logged_in(&self) -> bool {
        mem::take(&mut self.lock().has_logged_in)
    }

    /// Waits for the next order. One that came before is not missed; there may be none.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits, but no longer than `limit` and no longer than until the next order.
    pub async fn changed_within(&self, limit: Duration) {
        tokio::select! {
            () = self.changed() => {}
            () = tokio::time::sleep(limit) => {}
        }
    }

    /// Stops the harness; asked a second time, without grace.
    pub fn stop(&self) {
        if self.stop.is_cancelled() {
            self.stop_now.cancel();
        }
        self.stop.cancel();
        self.changed.notify_one();
    }

    /// Whether the harness is to stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Cancelled when the harness is to stop.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits until a running turn may not go on any longer.
    pub async fn out_of_grace(&self, grace: Duration) {
        self.stop.cancelled().await;
        tokio::select! {
            () = tokio::time::sleep(grace) => {}
            () = self.stop_now.cancelled() => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t19_a_new_session_is_wished_for_once() {
        let orders = Orders::default();
        orders.new_session();
        orders.new_session();
        assert!(orders.take_new_session());
        assert!(!orders.take_new_session());
    }

    #[test]
    fn an_interrupt_needs_a_turn_and_reaches_the_next_attempt_too() {
        let orders = Orders::default();
        assert!(orders.interrupt().is_err());
        orders.turn_begins();
        assert!(!orders.is_interrupted());
        assert!(orders.interrupt().is_ok());
        assert!(orders.interrupt().is_ok(), "twice is once");
        assert!(orders.is_interrupted());
        orders.turn_ends();
        assert!(!orders.is_interrupted());
        assert!(orders.interrupt().is_err());
    }

    #[test]
    fn t23_a_compaction_too_many_is_refused_and_not_forgotten() {
        let orders = Orders::default();
        let most = i64::try_from(MAX_COMPACTIONS).unwrap();
        for id in 0..most {
            assert_eq!(orders.compact(ControlId(id)), Ok(()));
        }
        assert!(orders.compact(ControlId(most)).is_err());
        assert_eq!(orders.take_compactions().len(), MAX_COMPACTIONS);
        assert_eq!(orders.compact(ControlId(most)), Ok(()));
    }

    #[test]
    fn a_hold_ends_by_time_or_by_release() {
        let orders = Orders::default();
        let later = Timestamp::now().plus(Duration::from_secs(600));
        orders.hold(Timestamp::from_millis(0), "past");
        assert_eq!(orders.held(), None);
        orders.hold(later, "limit");
        assert_eq!(orders.held().unwrap().reason, "limit");
        let before = orders.releases();
        orders.release();
        assert_eq!(orders.held(), None);
        assert_ne!(orders.releases(), before);
    }

    #[test]
    fn c18_a_pause_lasts_until_it_is_ended_and_may_stop_the_turn() {
        let orders = Orders::default();
        orders.pause("lunch", false);
        assert_eq!(orders.paused().as_deref(), Some("lunch"));
        orders.release();
        assert!(orders.paused().is_some(), "a limit that ends ends no pause");
        orders.resume();
        assert_eq!(orders.paused(), None);
        orders.pause("now", true);
        assert!(!orders.take_give_back(), "no turn runs");
        orders.turn_begins();
        orders.pause("now", true);
        assert!(orders.is_interrupted());
        assert!(orders.take_give_back() && !orders.take_give_back());
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_stop_grants_no_grace() {
        let orders = Orders::default();
        orders.stop();
        assert!(orders.is_stopping());
        let waiting = orders.out_of_grace(Duration::from_secs(3_600));
        tokio::pin!(waiting);
        assert!(
            tokio::time::timeout(Duration::from_secs(1), &mut waiting)
                .await
                .is_err()
        );
        orders.stop();
        waiting.await;
    }
}
