//! `schedules`: what is scheduled for whom (M12).

use std::sync::Arc;

use hive_store::sqlite::Schedule;
use hive_wire::{
    WireError,
    agent::{ScheduleRow, Schedules},
    host::ShowSchedules,
    text,
};

use super::Host;

/// How many bytes of prompts a list has, so that it fits into one line.
const LIST_BYTES: usize = 768 * 1024;

pub(crate) async fn run(host: Arc<Host>, command: ShowSchedules) -> Result<Schedules, WireError> {
    if let Some(name) = &command.name {
        host.find(name.clone()).await?;
    }
    let schedules = host.read(hive_store::Readers::schedules).await?;
    let wanted = |row: &ScheduleRow| command.name.as_ref().is_none_or(|name| *name == row.agent);
    let mut bytes = 0;
    let rows = schedules.into_iter().map(row).filter(wanted);
    let rows = rows.take_while(|row| {
        bytes += 512 + text::encoded_length(&row.prompt);
        bytes <= LIST_BYTES
    });
    Ok(Schedules {
        schedules: rows.collect(),
    })
}

/// A schedule as it is shown.
pub(crate) fn row(row: Schedule) -> ScheduleRow {
    ScheduleRow {
        schedule_id: row.id,
        agent: row.schedule.agent,
        prompt: row.schedule.prompt,
        cron: row.schedule.cron,
        time_zone: row.schedule.time_zone,
        next_at: row.schedule.next_at,
        created_at: row.created_at,
        fired_at: row.fired_at,
    }
}
