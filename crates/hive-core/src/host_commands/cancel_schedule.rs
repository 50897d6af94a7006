//! `cancel_schedule`: deletes a schedule, whosever it is, and tells its agent (M12).

use std::sync::Arc;

use hive_wire::{WireError, agent::ScheduleRow, host::CancelAnySchedule};
use serde_json::json;

use super::{Host, schedules};

pub(crate) async fn run(
    host: Arc<Host>,
    command: CancelAnySchedule,
) -> Result<ScheduleRow, WireError> {
    let id = command.schedule_id;
    host.broker
        .run(move |desk| {
            let row = desk.store(|tx| tx.cancel_schedule(None, id))?;
            desk.agenda_changed();
            let row = schedules::row(row);
            let event = json!({
                "event": "schedule_cancelled",
                "schedule_id": id,
                "by": "operator",
                "prompt": row.prompt,
            });
            desk.report_agent(&row.agent, "schedule_cancelled", &event);
            desk.tell(&row.agent, &event);
            Ok(row)
        })
        .await
}
