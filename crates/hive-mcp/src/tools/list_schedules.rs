use hive_wire::agent::{ListSchedules as List, ScheduleRow};
use schemars::JsonSchema;
use serde::Serialize;

use super::NoArgs;
use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Effect, Failure, Tool},
};

/// Lists the agent's own schedules (M12).
pub struct ListSchedules;

/// The schedules.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The one that comes next first.
    schedules: Vec<Schedule>,
}

/// One schedule.
#[derive(Debug, Serialize, JsonSchema)]
struct Schedule {
    /// Its id, for cancel_schedule.
    schedule_id: i64,
    /// What it says.
    prompt: String,
    /// When it comes again and again; null for one that comes once.
    cron: Option<String>,
    /// The time zone of cron.
    time_zone: Option<String>,
    /// When it comes next.
    next_at: String,
    /// When it came last; null when it has not come yet.
    fired_at: Option<String>,
}

impl Tool<Hyperhive> for ListSchedules {
    const NAME: &'static str = "list_schedules";
    const TITLE: &'static str = "List your schedules";
    const DESCRIPTION: &'static str = "List the prompts that you have scheduled, the next one \
        first. Look here before you schedule something, so that it is not scheduled twice, and \
        cancel what is no longer needed.";
    const EFFECT: Effect = Effect::Reads;
    type Args = NoArgs;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, _: NoArgs, _: &Call) -> Result<Reply, Failure> {
        let listed = hive.call(&List {}).await?;
        Ok(Reply {
            schedules: listed.schedules.into_iter().map(shown).collect(),
        })
    }
}

fn shown(row: ScheduleRow) -> Schedule {
    Schedule {
        schedule_id: row.schedule_id.0,
        prompt: row.prompt,
        cron: row.cron,
        time_zone: row.time_zone,
        next_at: row.next_at.to_string(),
        fired_at: row.fired_at.map(|at| at.to_string()),
    }
}
