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
#[derive(Debug, Default)]
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
    pub(super) fn pause(&mut self) {
        self.paused_until = Some(Instant::now() + LOOK_AGAIN);
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let is_paused = self
            .paused_until
            .is_some_and(|until| until > Instant::now());
        !is_paused && self.next.is_some_and(|next| next <= now)
    }

    /// When to look at the clock again.
    pub(super) fn wake_at(&self, now: Timestamp) -> Option<Instant> {
        let at = Instant::now() + self.next?.until(now).min(LOOK_AGAIN);
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
