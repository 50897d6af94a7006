//! `remind`: a message to oneself, later (M8).

use std::time::Duration;

use hive_wire::{
    ErrorCode, Timestamp, WireError,
    agent::{Remind, Reminded},
};

use super::{Caller, check_body};
use crate::server::Reply;

/// The furthest a reminder may lie ahead.
const MAX_AHEAD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

pub(super) fn run(caller: &Caller, command: Remind, reply: Reply<Reminded>) {
    let due_at = match check_body("message", &command.message)
        .and_then(|()| due(&command, Timestamp::now()))
    {
        Ok(due_at) => due_at,
        Err(error) => return reply.refuse(error),
    };
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            let limit = desk.config.limits.reminders_per_agent;
            let reminder_id =
                desk.store(|tx| tx.remind(&agent, &command.message, due_at, limit))?;
            desk.agenda_changed();
            Ok(Reminded {
                reminder_id,
                due_at,
            })
        },
        move |outcome| reply.send(outcome),
    );
}

/// When the reminder fires; a time that has passed means now.
fn due(command: &Remind, now: Timestamp) -> Result<Timestamp, WireError> {
    let due_at = match (command.delay_seconds, command.at_unix_timestamp) {
        (Some(delay), None) => now.plus(Duration::from_secs(delay.min(MAX_AHEAD.as_secs() + 1))),
        (None, Some(at)) => Timestamp::from_millis(at.saturating_mul(1_000)),
        _ => {
            return Err(WireError::new(
                ErrorCode::BadRequest,
                "give either `delay_seconds` or `at_unix_timestamp`",
            ));
        }
    };
    if due_at > now.plus(MAX_AHEAD) {
        return Err(WireError::new(
            ErrorCode::BadRequest,
            "a reminder lies at most a year ahead",
        ));
    }
    Ok(due_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m8_exactly_one_of_the_two_times_and_not_too_far() {
        let now = Timestamp::from_millis(1_000_000);
        let remind = |delay_seconds, at_unix_timestamp| Remind {
            message: String::new(),
            delay_seconds,
            at_unix_timestamp,
            key: None,
        };
        let at = |command: &Remind| due(command, now).ok().map(Timestamp::millis);
        assert_eq!(at(&remind(Some(5), None)), Some(1_005_000));
        assert_eq!(at(&remind(None, Some(2_000))), Some(2_000_000));
        assert_eq!(
            at(&remind(None, Some(-5))),
            Some(-5_000),
            "passed: it fires at once"
        );
        for bad in [
            remind(None, None),
            remind(Some(1), Some(1)),
            remind(Some(u64::MAX), None),
            remind(None, Some(i64::MAX)),
        ] {
            assert_eq!(at(&bad), None, "{bad:?}");
        }
    }
}
