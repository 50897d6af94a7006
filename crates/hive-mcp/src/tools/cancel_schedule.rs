use hive_wire::{ScheduleId, agent::CancelSchedule as Cancel};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Done;
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Deletes a schedule of the agent's own (M12).
pub struct CancelSchedule;

/// Which one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The schedule, as list_schedules shows it.
    schedule_id: i64,
    /// Your own name for this cancellation. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

impl Tool<Hyperhive> for CancelSchedule {
    const NAME: &'static str = "cancel_schedule";
    const TITLE: &'static str = "Delete a schedule";
    const DESCRIPTION: &'static str = "Delete a prompt that you have scheduled, when it is no \
        longer needed. It does not come again; one that is in your inbox already still does. You \
        can only delete what is your own.";
    const EFFECT: Effect = Effect::Removes;
    type Args = Args;
    type Reply = Done;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Done, Failure> {
        let cancel = Cancel {
            schedule_id: ScheduleId(args.schedule_id),
            key: key(args.key)?,
        };
        hive.call(&cancel).await?;
        Ok(Done::new("the schedule is deleted"))
    }
}
