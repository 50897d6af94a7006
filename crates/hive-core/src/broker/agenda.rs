//! What happens at a time of day: reminders that fire, questions and requests that expire.
//!
//! Times are wall-clock times, which jump; so the broker looks again at least every half minute
//! while something is on the agenda, and not at all while nothing is.

use std::time::{Duration, Instant};

use hive_store::{
    NewMessage, Refusal,
    sqlite::{ApprovalState, QuestionEnd, Reminder, Tx},
};
use hive_wire::{SenderLabel, Timestamp, WireError, name::REMINDER};

use super::Desk;
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

/// Fires everything that is due, in the order it was due; whether all of it could be.
pub(super) fn fire(desk: &mut Desk<'_>) -> bool {
    let fired = fire_reminders(desk)
        .and_then(|()| expire_questions(desk))
        .and_then(|()| expire_approvals(desk));
    if let Err(error) = &fired {
        tracing::error!(%error, "something that is due cannot be dealt with");
    }
    desk.agenda_changed();
    fired.is_ok()
}

fn fire_reminders(desk: &mut Desk<'_>) -> Result<(), WireError> {
    let due = desk.store(|tx| tx.take_due_reminders())?;
    due.into_iter()
        .try_for_each(|reminder| deliver(desk, reminder))
}

fn expire_questions(desk: &mut Desk<'_>) -> Result<(), WireError> {
    for id in desk.store(|tx| tx.expired_questions())? {
        desk.end_question(id, &QuestionEnd::Expired)?;
    }
    Ok(())
}

fn expire_approvals(desk: &mut Desk<'_>) -> Result<(), WireError> {
    for id in desk.store(|tx| tx.expired_approvals())? {
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
