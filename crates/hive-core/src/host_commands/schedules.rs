//! `schedules`: what is scheduled for whom (M12).

use std::sync::Arc;

use hive_store::sqlite::Schedule;
use hive_wire::{
    WireError,
    agent::{ScheduleRow, Schedules},
    host::ShowSchedules,
    text,
};

use super::{Host, fitting};

pub(crate) async fn run(host: Arc<Host>, command: ShowSchedules) -> Result<Schedules, WireError> {
    if let Some(name) = &command.name {
        host.find(name.clone()).await?;
    }
    let schedules = host
        .read(move |readers| readers.schedules(command.name.as_ref()))
        .await?;
    let mut schedules: Vec<_> = schedules.into_iter().map(row).collect();
    fitting::cut(&mut schedules, |row| {
        512 + text::encoded_length(&row.prompt)
    });
    Ok(Schedules { schedules })
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
