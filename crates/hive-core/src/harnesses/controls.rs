//! Requests to one harness: what waits, what was sent, and what stands.

use std::{collections::VecDeque, time::Duration};

use hive_wire::{
    ControlId, ErrorCode, Timestamp, WireError,
    control::{ControlAction, ControlDone, ControlRequest, MAX_DONE},
    text,
};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

/// The most requests that a harness has not answered.
const MAX_PENDING: usize = 16;
/// A request that is not answered by then is dropped.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// How much of a harness's note is kept.
const MAX_NOTE: usize = 2_000;

/// What one harness is asked.
#[derive(Default)]
pub(super) struct Controls {
    /// The newest poll; older ones end.
    poll: u64,
    changed: watch::Sender<()>,
    pending: VecDeque<Pending>,
    /// The last hold or release: the harness must know it, but answers neither.
    hold: Option<Standing>,
    /// The last pause or its end, likewise.
    pause: Option<Standing>,
    /// The tool groups that it was started without.
    groups: Option<Standing>,
}

struct Pending {
    request: ControlRequest,
    is_sent: bool,
    expires: Instant,
    answer: oneshot::Sender<ControlDone>,
}

struct Standing {
    request: ControlRequest,
    is_sent: bool,
}

impl Controls {
    /// Begins a poll: its ticket, and how to learn of changes.
    pub(super) fn enter(
        &mut self,
        is_first: bool,
        done: Vec<ControlDone>,
    ) -> (u64, watch::Receiver<()>) {
        for done in done.into_iter().take(MAX_DONE) {
            self.answered(done);
        }
        if is_first {
            self.pending
                .iter_mut()
                .for_each(|pending| pending.is_sent = false);
            for standing in self.standing() {
                standing.is_sent = false;
            }
        }
        self.end_poll();
        (self.poll, self.changed.subscribe())
    }

    /// What the harness must know, and answers with nothing.
    fn standing(&mut self) -> impl Iterator<Item = &mut Standing> {
        [&mut self.pause, &mut self.hold, &mut self.groups]
            .into_iter()
            .flatten()
    }

    /// Ends the poll that is under way.
    pub(super) fn end_poll(&mut self) {
        self.poll += 1;
        self.changed.send_replace(());
    }

    /// What the poll with this ticket has to bring now; none when it has to end.
    pub(super) fn collect(&mut self, ticket: u64, now: Timestamp) -> Option<Vec<ControlRequest>> {
        if ticket != self.poll {
            return None;
        }
        self.drop_old();
        let mut requests = Vec::new();
        for standing in self.standing().filter(|standing| !standing.is_sent) {
            standing.is_sent = true;
            if !is_over(&standing.request.action, now) {
                requests.push(standing.request.clone());
            }
        }
        for pending in self.pending.iter_mut().filter(|pending| !pending.is_sent) {
            pending.is_sent = true;
            requests.push(pending.request.clone());
        }
        Some(requests)
    }

    /// Adds a request; the way its answer comes.
    pub(super) fn ask(
        &mut self,
        request_id: ControlId,
        action: ControlAction,
    ) -> Result<oneshot::Receiver<ControlDone>, WireError> {
        self.drop_old();
        if self.pending.len() >= MAX_PENDING {
            return Err(WireError::new(
                ErrorCode::LimitReached,
                format!("the harness has {MAX_PENDING} requests that it has not answered"),
            )
            .hint("wait for it, or restart the agent"));
        }
        let (answer, answered) = oneshot::channel();
        self.pending.push_back(Pending {
            request: ControlRequest { request_id, action },
            is_sent: false,
            expires: Instant::now() + LIFE,
            answer,
        });
        self.changed.send_replace(());
        Ok(answered)
    }

    /// Tells the harness to wait, or that it need not any more. The newest word counts.
    pub(super) fn stand(&mut self, request_id: ControlId, action: ControlAction) {
        self.hold = Some(Standing {
            request: ControlRequest { request_id, action },
            is_sent: false,
        });
        self.changed.send_replace(());
    }

    /// Tells the harness that it is paused, or is not any more. The same word again is not said
    /// again, and nobody is told that a pause is over who was never told of one.
    pub(super) fn pause(&mut self, request_id: ControlId, action: ControlAction) {
        let before = self.pause.as_ref().map(|standing| &standing.request.action);
        if before == Some(&action) || (before.is_none() && action == ControlAction::Resume) {
            return;
        }
        self.pause = Some(Standing {
            request: ControlRequest { request_id, action },
            is_sent: false,
        });
        self.changed.send_replace(());
    }

    /// Tells the harness its tool groups. The newest word counts.
    pub(super) fn regroup(&mut self, request_id: ControlId, action: ControlAction) {
        self.groups = Some(Standing {
            request: ControlRequest { request_id, action },
            is_sent: false,
        });
        self.changed.send_replace(());
    }

    /// How many requests are not answered.
    pub(super) fn pending(&mut self) -> u32 {
        self.drop_old();
        u32::try_from(self.pending.len()).unwrap_or(u32::MAX)
    }

    fn answered(&mut self, mut done: ControlDone) {
        let place = self
            .pending
            .iter()
            .position(|pending| pending.request.request_id == done.request_id);
        let Some(pending) = place.and_then(|place| self.pending.remove(place)) else {
            return;
        };
        done.note = done.note.map(|note| text::shorten(&note, MAX_NOTE));
        // Whoever asked may have gone.
        drop(pending.answer.send(done));
    }

    fn drop_old(&mut self) {
        let now = Instant::now();
        self.pending.retain(|pending| pending.expires > now);
    }
}

/// Whether a hold has ended by itself.
fn is_over(action: &ControlAction, now: Timestamp) -> bool {
    matches!(action, ControlAction::Hold { until, .. } if *until <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn ids(requests: Option<Vec<ControlRequest>>) -> Option<Vec<i64>> {
        requests.map(|requests| {
            requests
                .iter()
                .map(|request| request.request_id.0)
                .collect()
        })
    }

    fn hold(until: i64) -> ControlAction {
        ControlAction::Hold {
            until: Timestamp::from_millis(NOW.millis() + until),
            reason: "limit".into(),
        }
    }

    fn done(id: i64) -> ControlDone {
        ControlDone {
            request_id: ControlId(id),
            ok: true,
            note: Some("x".repeat(9_000)),
        }
    }

    #[test]
    fn a_request_is_sent_once_to_each_connection_until_it_is_answered() {
        let mut controls = Controls::default();
        let mut answer = controls.ask(ControlId(7), ControlAction::Compact).unwrap();
        let (first, _) = controls.enter(true, vec![]);
        assert_eq!(ids(controls.collect(first, NOW)), Some(vec![7]));
        let (second, _) = controls.enter(false, vec![]);
        assert_eq!(
            ids(controls.collect(second, NOW)),
            Some(vec![]),
            "it was sent"
        );
        assert_eq!(ids(controls.collect(first, NOW)), None, "superseded");
        let (third, _) = controls.enter(true, vec![]);
        assert_eq!(
            ids(controls.collect(third, NOW)),
            Some(vec![7]),
            "a new connection"
        );
        controls.enter(false, vec![done(99), done(7), done(7)]);
        let note = answer.try_recv().unwrap().note.unwrap();
        assert!(note.chars().count() <= MAX_NOTE + 1);
        assert_eq!(controls.pending(), 0);
    }

    #[test]
    fn a_hold_stands_until_it_is_over_or_lifted() {
        let mut controls = Controls::default();
        controls.stand(ControlId(1), hold(5_000));
        let (ticket, _) = controls.enter(true, vec![]);
        assert_eq!(ids(controls.collect(ticket, NOW)), Some(vec![1]));
        assert_eq!(ids(controls.collect(ticket, NOW)), Some(vec![]));
        let (ticket, _) = controls.enter(true, vec![]);
        assert_eq!(
            ids(controls.collect(ticket, NOW)),
            Some(vec![1]),
            "said again"
        );
        controls.stand(ControlId(2), ControlAction::Release);
        assert_eq!(ids(controls.collect(ticket, NOW)), Some(vec![2]));
        controls.stand(ControlId(3), hold(-1));
        assert_eq!(
            ids(controls.collect(ticket, NOW)),
            Some(vec![]),
            "over already"
        );
    }

    #[test]
    fn requests_are_bounded() {
        let mut controls = Controls::default();
        let answers: Vec<_> = (0..16)
            .map(|id| {
                controls
                    .ask(ControlId(id), ControlAction::Interrupt)
                    .unwrap()
            })
            .collect();
        let refused = controls.ask(ControlId(99), ControlAction::Interrupt);
        assert_eq!(refused.unwrap_err().code, ErrorCode::LimitReached);
        drop(answers);
    }
}
