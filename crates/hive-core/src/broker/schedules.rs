//! Schedules that fire (M12). They never pile up: what falls due while the last prompt still waits,
//! or while the daemon was away, becomes one prompt that says how many firings it stands for.

use hive_store::{
    Mail, NewMessage,
    sqlite::{Firing, Schedule},
};
use hive_wire::{SenderLabel, Timestamp, WireError, agent::MessageState};
use serde_json::json;

use super::Desk;
use crate::cron::{Due, Recurrence};

/// From how late on a prompt says when it was due.
const LATE_MILLIS: i64 = 60_000;

/// Fires the schedule that was due first.
pub(super) fn fire_first(desk: &mut Desk<'_>) -> Result<(), WireError> {
    for schedule in desk.store(|tx| tx.due_schedules(1))? {
        fire(desk, schedule)?;
    }
    Ok(())
}

fn fire(desk: &mut Desk<'_>, row: Schedule) -> Result<(), WireError> {
    let due = due(&row, desk.now());
    let is_unread = match row.message {
        Some(message) => {
            let receipt = desk.store(|tx| tx.receipt(message))?;
            receipt.is_some_and(|receipt| {
                matches!(receipt.state, MessageState::Stored | MessageState::Leased)
            })
        }
        None => false,
    };
    let is_gone = desk.roster.find(row.schedule.agent.as_str()).is_err();
    let firing = if is_unread || is_gone {
        Firing::LeftOut(row.missed.saturating_add(due.count))
    } else {
        Firing::Sent(send(desk, &row, due)?)
    };
    let data = json!({
        "schedule_id": row.id,
        "sent": matches!(firing, Firing::Sent(_)),
        "next_at": due.next,
    });
    desk.report_agent(&row.schedule.agent, "schedule_fired", &data);
    desk.store(|tx| tx.fired(row.id, firing, due.next))
}

fn send(desk: &mut Desk<'_>, row: &Schedule, due: Due) -> Result<hive_wire::MessageId, WireError> {
    let from: SenderLabel = format!("schedule-{}", row.id)
        .parse()
        .expect("a word and a number are a legal label");
    let body = body(row, row.missed.saturating_add(due.count), desk.now());
    let message = NewMessage {
        bounded: false,
        ..NewMessage::plain(from, row.schedule.agent.clone().into(), body)
    };
    desk.send(message).map(|sent| sent.message_id)
}

/// How often it fell due until now, and when it does again.
fn due(row: &Schedule, now: Timestamp) -> Due {
    let once = Due {
        count: 1,
        next: None,
    };
    let Some(cron) = &row.schedule.cron else {
        return once;
    };
    match Recurrence::parse(cron, row.schedule.time_zone.as_deref()) {
        Ok(recurrence) => recurrence.due(row.schedule.next_at, now),
        // A time zone that this machine no longer knows: it fires for the last time.
        Err(error) => {
            tracing::error!(schedule = %row.id, error, "a schedule cannot go on");
            once
        }
    }
}

/// What the prompt says, with a remark when it does not come as it was meant to.
fn body(row: &Schedule, count: u32, now: Timestamp) -> String {
    let (id, prompt, at) = (row.id, &row.schedule.prompt, row.schedule.next_at);
    if count > 1 {
        return format!(
            "{prompt}\n\n[schedule {id}: this one prompt stands for {count} that fell due while \
             you were away or had not dealt with the one before]"
        );
    }
    if now.millis().saturating_sub(at.millis()) > LATE_MILLIS {
        return format!("{prompt}\n\n[schedule {id}: this was due at {at}]");
    }
    prompt.clone()
}

#[cfg(test)]
mod tests {
    use hive_store::sqlite::NewSchedule;
    use hive_wire::ScheduleId;

    use super::*;

    fn row(cron: Option<&str>) -> Schedule {
        Schedule {
            id: ScheduleId(4),
            schedule: NewSchedule {
                agent: "ada".parse().unwrap(),
                prompt: "look".to_owned(),
                cron: cron.map(str::to_owned),
                time_zone: None,
                next_at: Timestamp::from_millis(1_700_000_040_000),
            },
            created_at: Timestamp::from_millis(0),
            fired_at: None,
            message: None,
            missed: 0,
        }
    }

    #[test]
    fn m12_a_prompt_says_when_it_stands_for_more_or_comes_late() {
        let now = |millis: i64| Timestamp::from_millis(1_700_000_040_000 + millis);
        assert_eq!(body(&row(None), 1, now(0)), "look");
        assert_eq!(body(&row(None), 1, now(60_000)), "look");
        assert!(body(&row(None), 1, now(60_001)).contains("due at 2023-11-14T22:14:00"));
        assert!(body(&row(None), 3, now(0)).contains("stands for 3"));
    }

    #[test]
    fn m12_once_is_once_and_a_recurrence_goes_on_after_now() {
        let now = Timestamp::from_millis(1_700_000_040_000 + 150_000);
        let once = due(&row(None), now);
        assert_eq!((once.count, once.next), (1, None));
        let recurring = due(&row(Some("* * * * *")), now);
        assert_eq!(recurring.count, 3);
        assert_eq!(
            recurring.next,
            Some(Timestamp::from_millis(1_700_000_040_000 + 180_000))
        );
        assert_eq!(due(&row(Some("no cron")), now), once, "the last time");
    }
}
