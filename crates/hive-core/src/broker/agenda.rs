//! What happens at a time of day: reminders and schedules that fire, questions and requests that
//! expire.
//!
//! Times are wall-clock times, which jump; so the broker looks again at least every half minute
//! while something is on the agenda, and not at all while nothing is.

use std::time::{Duration, Instant};

use hive_store::{
    NewMessage, Refusal,
    sqlite::{ApprovalState, QuestionEnd, Reminder, Tx},
};
use hive_wire::{SenderLabel, Timestamp, WireError, name::REMINDER};

use super::{Desk, schedules};
use crate::approvals;

/// How far a jump of the clock can delay what is due.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The next thing that is due, as far as the broker's thread knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Agenda {
    next: Option<Timestamp>,
    /// Not to be looked at before, because something that is due cannot be dealt with.
    paused_until: Option<Instant>,
}

impl Agenda {
    /// Looks up what is due next.
    pub(super) fn look_up(tx: &Tx<'_>) -> Result<Self, Refusal> {
        let times = [
            tx.next_reminder()?,
            tx.next_schedule()?,
            tx.next_expiry()?,
            tx.next_approval_expiry()?,
        ];
        Ok(Self {
            next: times.into_iter().flatten().min(),
            paused_until: None,
        })
    }

    /// Lets what cannot be dealt with rest for a while.
    pub(super) fn pause(&mut self, instant: Instant) {
        self.paused_until = Some(instant + LOOK_AGAIN);
    }

    /// Whether something is due, by the clock on the wall and by the one that never jumps.
    pub(super) fn is_due(&self, now: Timestamp, instant: Instant) -> bool {
        let is_paused = self.paused_until.is_some_and(|until| until > instant);
        !is_paused && self.next.is_some_and(|next| next <= now)
    }

    /// When to look at the clock again.
    pub(super) fn wake_at(&self, now: Timestamp, instant: Instant) -> Option<Instant> {
        let at = instant + self.next?.until(now).min(LOOK_AGAIN);
        Some(self.paused_until.map_or(at, |until| until.max(at)))
    }
}

/// The most that one group fires: what is left is due in the next one.
const FIRED_AT_ONCE: usize = 128;

/// What is due first.
enum First {
    Reminder,
    Schedule,
    Question,
    Approval,
}

/// Fires what is due, in the order it was due; whether all of it could be.
pub(super) fn fire(desk: &mut Desk<'_>) -> bool {
    let mut fired = Ok(true);
    for _ in 0..FIRED_AT_ONCE {
        fired = fire_first(desk);
        if !matches!(fired, Ok(true)) {
            break;
        }
    }
    if let Err(error) = &fired {
        tracing::error!(%error, "something that is due cannot be dealt with");
    }
    desk.agenda_changed();
    fired.is_ok()
}

/// Fires what was due first; false when nothing is due.
fn fire_first(desk: &mut Desk<'_>) -> Result<bool, WireError> {
    let times = desk.store(|tx| {
        Ok([
            (tx.next_reminder()?, First::Reminder),
            (tx.next_schedule()?, First::Schedule),
            (tx.next_expiry()?, First::Question),
            (tx.next_approval_expiry()?, First::Approval),
        ])
    })?;
    let now = desk.now();
    let due = times
        .into_iter()
        .filter_map(|(at, what)| Some((at.filter(|at| *at <= now)?, what)));
    match due.min_by_key(|(at, _)| *at) {
        Some((_, First::Reminder)) => fire_reminder(desk)?,
        Some((_, First::Schedule)) => schedules::fire_first(desk)?,
        Some((_, First::Question)) => expire_question(desk)?,
        Some((_, First::Approval)) => expire_approval(desk)?,
        None => return Ok(false),
    }
    Ok(true)
}

fn fire_reminder(desk: &mut Desk<'_>) -> Result<(), WireError> {
    let due = desk.store(|tx| tx.take_due_reminders(1))?;
    due.into_iter()
        .try_for_each(|reminder| deliver(desk, reminder))
}

fn expire_question(desk: &mut Desk<'_>) -> Result<(), WireError> {
    for id in desk.store(|tx| tx.expired_questions(1))? {
        desk.end_question(id, &QuestionEnd::Expired)?;
    }
    Ok(())
}

fn expire_approval(desk: &mut Desk<'_>) -> Result<(), WireError> {
    for id in desk.store(|tx| tx.expired_approvals(1))? {
        let expired = desk.store(|tx| tx.decide(id, None, ApprovalState::Expired, ""))?;
        approvals::resolved(desk, &expired);
    }
    Ok(())
}

fn deliver(desk: &mut Desk<'_>, reminder: Reminder) -> Result<(), WireError> {
    let from: SenderLabel = REMINDER.parse().expect("a legal label");
    let message = NewMessage {
        bounded: false,
        ..NewMessage::plain(from, reminder.agent.into(), reminder.body)
    };
    desk.send(message).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60;
    /// When something is due, in seconds of the clock on the wall.
    const DUE: u64 = 100 * HOUR;

    fn wall(seconds: u64) -> Timestamp {
        Timestamp::from_millis(i64::try_from(seconds * 1_000).unwrap())
    }

    fn agenda(next: Option<u64>) -> Agenda {
        Agenda {
            next: next.map(wall),
            paused_until: None,
        }
    }

    #[test]
    fn a_clock_that_jumps_delays_nothing_by_more_than_half_a_minute() {
        let agenda = agenda(Some(DUE));
        let began = Instant::now();
        // What the clock on the wall says one look after the other, whether something is due, and
        // after how many seconds that pass the next look comes.
        let looks = [
            ("long before", DUE - HOUR, false, 30),
            ("right before", DUE - 29, false, 29),
            ("set back by a day", DUE - 24 * HOUR, false, 30),
            ("set back to the beginning", 0, false, 30),
            ("set forward, too little", DUE - 1, false, 1),
            ("on the dot", DUE, true, 0),
            ("set forward by a day", DUE + 24 * HOUR, true, 0),
            ("set back before it fired", DUE - 2 * HOUR, false, 30),
            ("set forward again", DUE + 1, true, 0),
        ];
        let mut instant = began;
        for (what, clock, is_due, sleeps) in looks {
            assert_eq!(agenda.is_due(wall(clock), instant), is_due, "{what}");
            let woken = agenda.wake_at(wall(clock), instant).unwrap();
            assert_eq!(woken - instant, Duration::from_secs(sleeps), "{what}");
            instant = woken;
        }
    }

    #[test]
    fn what_cannot_be_dealt_with_rests_wherever_the_clock_jumps() {
        let mut agenda = agenda(Some(DUE));
        let began = Instant::now();
        agenda.pause(began);
        let rested = began + LOOK_AGAIN;
        for clock in [0, DUE - 1, DUE, DUE + 24 * HOUR] {
            let almost = rested.checked_sub(Duration::from_millis(1)).unwrap();
            assert!(!agenda.is_due(wall(clock), began), "{clock}");
            assert!(!agenda.is_due(wall(clock), almost), "{clock}");
            assert_eq!(agenda.is_due(wall(clock), rested), clock >= DUE, "{clock}");
            assert_eq!(agenda.wake_at(wall(clock), began), Some(rested), "{clock}");
        }
    }

    #[test]
    fn an_empty_agenda_wakes_nobody() {
        for clock in [0, DUE] {
            let now = Instant::now();
            assert!(!agenda(None).is_due(wall(clock), now));
            assert_eq!(agenda(None).wake_at(wall(clock), now), None);
        }
    }
}
