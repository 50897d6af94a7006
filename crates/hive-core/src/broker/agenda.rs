//! What happens at a time of day: reminders that fire and questions that expire.
//!
//! Times are wall-clock times, which jump; so the broker looks again at least every half minute
//! while something is on the agenda, and not at all while nothing is.

use std::time::{Duration, Instant};

use hive_store::{
    NewMessage, Refusal,
    sqlite::{QuestionEnd, Reminder, Tx},
};
use hive_wire::{SenderLabel, Timestamp};

use super::Desk;

/// How far a jump of the clock can delay what is due.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The next thing that is due, as far as the broker's thread knows.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    next: Option<Timestamp>,
}

impl Agenda {
    /// Looks up what is due next.
    pub(super) fn look_up(tx: &Tx<'_>) -> Result<Self, Refusal> {
        let times = [tx.next_reminder()?, tx.next_expiry()?];
        Ok(Self {
            next: times.into_iter().flatten().min(),
        })
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// When to look at the clock again.
    pub(super) fn wake_at(&self, now: Timestamp) -> Option<Instant> {
        Some(Instant::now() + self.next?.until(now).min(LOOK_AGAIN))
    }
}

/// Fires everything that is due, in the order it was due.
pub(super) fn fire(desk: &mut Desk<'_>) {
    match desk.store(|tx| tx.take_due_reminders()) {
        Ok(due) => due.into_iter().for_each(|reminder| deliver(desk, reminder)),
        Err(error) => tracing::error!(%error, "cannot look for due reminders"),
    }
    match desk.store(|tx| tx.expired_questions()) {
        Ok(expired) => {
            for id in expired {
                if let Err(error) = desk.end_question(id, &QuestionEnd::Expired) {
                    tracing::error!(question = id.0, %error, "cannot let a question expire");
                }
            }
        }
        Err(error) => tracing::error!(%error, "cannot look for expired questions"),
    }
    desk.agenda_changed();
}

fn deliver(desk: &mut Desk<'_>, reminder: Reminder) {
    let from: SenderLabel = "reminder".parse().expect("a legal label");
    let message = NewMessage {
        bounded: false,
        ..NewMessage::plain(from, reminder.agent.into(), reminder.body)
    };
    if let Err(error) = desk.send(message) {
        tracing::error!(reminder = reminder.id.0, %error, "cannot deliver a reminder");
    }
}
