use hive_wire::agent::Schedule as Command;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Schedules a prompt for the agent itself (M12).
pub struct Schedule;

/// What to be told, and when.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What you will read then, with all that you will need to know; at most 16 KiB.
    prompt: String,
    /// Once, in so many seconds, 60 at least. Give one of delay_seconds, at_unix_timestamp, cron.
    #[serde(default)]
    #[schemars(range(min = 60))]
    delay_seconds: Option<u64>,
    /// Once, at this time in seconds since 1970.
    #[serde(default)]
    at_unix_timestamp: Option<i64>,
    /// Again and again: a cron expression `minute hour day month weekday`, such as
    /// `30 7 * * 1-5`.
    #[serde(default)]
    cron: Option<String>,
    /// The time zone of cron, such as `Europe/Vienna`; UTC unless given.
    #[serde(default)]
    time_zone: Option<String>,
    /// Your own name for this schedule. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

/// The prompt is scheduled.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its id, for cancel_schedule; the prompt comes from `schedule-` and this number.
    schedule_id: i64,
    /// When it comes next.
    next_at: String,
}

impl Tool<Hyperhive> for Schedule {
    const NAME: &'static str = "schedule";
    const TITLE: &'static str = "Schedule a prompt";
    const DESCRIPTION: &'static str = "Let a prompt wake you at a time, once or again and again. \
        It survives restarts and the operator sees it. What falls due while you are down or busy \
        does not pile up: one prompt comes and says how many it stands for. Two prompts of one \
        schedule are at least 60 seconds apart, and at most 20 schedules may exist. For a single \
        reminder use remind.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let times = [
            args.delay_seconds.is_some(),
            args.at_unix_timestamp.is_some(),
            args.cron.is_some(),
        ];
        if times.into_iter().filter(|given| *given).count() != 1 {
            return Err(Failure::new(
                "A schedule needs a time, and one of them",
                "give delay_seconds, at_unix_timestamp or cron",
            ));
        }
        let schedule = Command {
            prompt: args.prompt,
            delay_seconds: args.delay_seconds,
            at_unix_timestamp: args.at_unix_timestamp,
            cron: args.cron,
            time_zone: args.time_zone,
            key: key(args.key)?,
        };
        let scheduled = hive.call(&schedule).await?;
        Ok(Reply {
            schedule_id: scheduled.schedule_id.0,
            next_at: scheduled.next_at.to_string(),
        })
    }
}
