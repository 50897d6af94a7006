//! `schedule`: a prompt into one's own inbox, once or again and again (M12).

use std::time::Duration;

use hive_store::sqlite::NewSchedule;
use hive_wire::{
    AgentName, ErrorCode, Timestamp, WireError,
    agent::{Schedule, Scheduled},
    tools::MAX_PROMPT,
};
use serde_json::json;

use super::{Caller, MAX_AHEAD, check_length, once::Once};
use crate::{cron::Recurrence, server::Reply};

pub(super) fn run(caller: &Caller, command: Schedule, reply: Reply<Scheduled>) {
    let once = Once::of(&command, command.key.as_ref());
    let new = match plan(&caller.name, command, Timestamp::now()) {
        Ok(new) => new,
        Err(error) => return reply.refuse(error),
    };
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            once.run(desk, &agent, |desk| {
                let limit = desk.config.limits.schedules_per_agent;
                let schedule_id = desk.store(|tx| tx.schedule(&new, limit))?;
                desk.agenda_changed();
                let next_at = new.next_at;
                let data =
                    json!({"schedule_id": schedule_id, "cron": new.cron, "next_at": next_at});
                desk.report_agent(&agent, "schedule_made", &data);
                Ok(Scheduled {
                    schedule_id,
                    next_at,
                })
            })
        },
        move |outcome| reply.send(outcome),
    );
}

/// What is to be written down; refused when it makes no sense.
fn plan(agent: &AgentName, command: Schedule, now: Timestamp) -> Result<NewSchedule, WireError> {
    let bad = |what: String| WireError::new(ErrorCode::BadRequest, what);
    if command.prompt.trim().is_empty() {
        return Err(bad("`prompt` is empty".to_owned()));
    }
    check_length("prompt", &command.prompt, MAX_PROMPT)?;
    let next_at = match (
        command.delay_seconds,
        command.at_unix_timestamp,
        &command.cron,
    ) {
        (Some(delay), None, None) => {
            now.plus(Duration::from_secs(delay.min(MAX_AHEAD.as_secs() + 1)))
        }
        (None, Some(at), None) => Timestamp::from_millis(at.saturating_mul(1_000)),
        (None, None, Some(cron)) => {
            let recurrence = Recurrence::parse(cron, command.time_zone.as_deref()).map_err(bad)?;
            let next = recurrence.next(now);
            next.ok_or_else(|| bad(format!("`{cron}` never fires")))?
        }
        _ => {
            return Err(bad(
                "give one of `delay_seconds`, `at_unix_timestamp` and `cron`".to_owned(),
            ));
        }
    };
    if command.cron.is_none() {
        if command.time_zone.is_some() {
            return Err(bad("`time_zone` belongs to `cron`".to_owned()));
        }
        if next_at > now.plus(MAX_AHEAD) {
            return Err(bad("a schedule lies at most a year ahead".to_owned()));
        }
    }
    Ok(NewSchedule {
        agent: agent.clone(),
        prompt: command.prompt,
        cron: command.cron,
        time_zone: command.time_zone,
        next_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m12_a_schedule_has_one_time_and_it_makes_sense() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let ada: AgentName = "ada".parse().unwrap();
        let empty = || Schedule {
            prompt: "look".to_owned(),
            ..Schedule::default()
        };
        let at = |command| plan(&ada, command, now).map(|new| new.next_at.millis() - now.millis());
        let cron = |cron: &str, zone: Option<&str>| Schedule {
            cron: Some(cron.to_owned()),
            time_zone: zone.map(str::to_owned),
            ..empty()
        };
        let delay = |seconds| Schedule {
            delay_seconds: Some(seconds),
            ..empty()
        };
        assert_eq!(at(delay(5)), Ok(5_000));
        assert_eq!(
            at(Schedule {
                at_unix_timestamp: Some(1_700_000_060),
                ..empty()
            }),
            Ok(60_000)
        );
        // It is 22:13:20 in UTC.
        assert_eq!(at(cron("15 22 * * *", None)), Ok(100_000));
        assert_eq!(at(cron("15 23 * * *", Some("Europe/Vienna"))), Ok(100_000));
        for bad in [
            empty(),
            delay(u64::MAX),
            cron("* * * *", None),
            cron("* * * * * *", None),
            cron("0 0 30 2 *", None),
            cron("15 22 * * *", Some("Nowhere/Else")),
            Schedule {
                delay_seconds: Some(5),
                ..cron("15 22 * * *", None)
            },
            Schedule {
                time_zone: Some("UTC".to_owned()),
                ..delay(5)
            },
            Schedule {
                prompt: " ".to_owned(),
                ..delay(5)
            },
            Schedule {
                prompt: "x".repeat(MAX_PROMPT + 1),
                ..delay(5)
            },
        ] {
            let error = at(bad.clone()).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{bad:?}");
        }
    }
}
