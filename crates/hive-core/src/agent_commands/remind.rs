//! `remind`: a message to oneself, later (M8).

use std::time::Duration;

use hive_wire::{
    ErrorCode, Timestamp, WireError,
    agent::{Remind, Reminded},
};

use tokio::runtime::Handle;

use super::{Caller, MAX_AHEAD, check_body, once::Once};
use crate::{
    server::Reply,
    spill::{self, Spilled},
};

pub(super) fn run(caller: &Caller, command: Remind, reply: Reply<Reminded>) {
    let due_at = match due(&command, Timestamp::now()) {
        Ok(due_at) => due_at,
        Err(error) => return reply.refuse(error),
    };
    if command.message.len() <= spill::LONG {
        return set(caller, command, due_at, None, reply);
    }
    // Apart from the broker, which waits for no disk but its own.
    let (caller_too, state) = (caller.clone(), caller.paths.agent_dirs(&caller.name).state);
    let write = move || match Spilled::write(&state, &command.message) {
        Ok(spilled) => set(&caller_too, command, due_at, Some(spilled), reply),
        Err(error) => {
            // An agent that runs elsewhere has no directory here.
            tracing::debug!(%error, agent = %caller_too.name, "a long reminder stays in the database");
            set(&caller_too, command, due_at, None, reply);
        }
    };
    caller.tasks.spawn_blocking_on(write, &Handle::current());
}

/// Writes the reminder down: whole, or with its beginning and the file that has the rest.
fn set(
    caller: &Caller,
    command: Remind,
    due_at: Timestamp,
    spilled: Option<Spilled>,
    reply: Reply<Reminded>,
) {
    let once = Once::of(&command, command.key.as_ref());
    let body = match &spilled {
        Some(spilled) => spilled.instead_of(&command.message),
        None => command.message,
    };
    if let Err(error) = check_body("message", &body) {
        return reply.refuse(error);
    }
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            let limit = desk.config.limits.reminders_per_agent;
            let mut is_set = false;
            let reminded = once.run(desk, &agent, |desk| {
                let reminder_id = desk.store(|tx| tx.remind(&agent, &body, due_at, limit))?;
                is_set = true;
                desk.agenda_changed();
                Ok(Reminded {
                    reminder_id,
                    due_at,
                })
            })?;
            Ok((reminded, is_set))
        },
        move |outcome| {
            if let Some(spilled) = spilled
                && !outcome.as_ref().is_ok_and(|(_, is_set)| *is_set)
            {
                spilled.take_back();
            }
            reply.send(outcome.map(|(reminded, _)| reminded));
        },
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
