//! `schedules [NAME]`: shows what is scheduled for whom, or cancels one (M12).

use clap::Args;
use hive_wire::{
    AgentName, ScheduleId,
    agent::ScheduleRow,
    client::Client,
    host::{CancelAnySchedule, ShowSchedules},
};

use super::{failure::Failure, json, out::Out, table::Table};

/// Arguments of `schedules`.
#[derive(Debug, Args)]
pub struct SchedulesArgs {
    /// The agent; all of them unless given.
    name: Option<AgentName>,
    /// Delete this schedule; its agent is told.
    #[arg(long, value_name = "ID", conflicts_with = "name")]
    cancel: Option<ScheduleId>,
}

impl SchedulesArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        if let Some(schedule_id) = self.cancel {
            let row = host.call(&CancelAnySchedule { schedule_id }).await?;
            if out.is_json() {
                return out.json(json::ScheduleList::from(&[row][..]));
            }
            let agent = &row.agent;
            return out.line(format_args!(
                "schedule {schedule_id} of {agent} is cancelled, and {agent} is told"
            ));
        }
        let list = host.call(&ShowSchedules { name: self.name }).await?;
        if out.is_json() {
            return out.json(json::ScheduleList::from(list.schedules.as_slice()));
        }
        if list.schedules.is_empty() {
            out.note("nothing is scheduled");
            return Ok(());
        }
        out.table(&table(&list.schedules))?;
        out.note("cancel one with `hive-c0re schedules --cancel ID`");
        Ok(())
    }
}

fn table(rows: &[ScheduleRow]) -> Table {
    let mut table = Table::new(&["ID", "AGENT", "NEXT", "WHEN", "PROMPT"]);
    for row in rows {
        let when = match (&row.cron, &row.time_zone) {
            (Some(cron), Some(zone)) => format!("{cron} ({zone})"),
            (Some(cron), None) => format!("{cron} (UTC)"),
            (None, _) => "once".to_owned(),
        };
        table.row([
            row.schedule_id.to_string().into(),
            row.agent.as_str().into(),
            row.next_at.to_string().into(),
            when.into(),
            row.prompt.as_str().into(),
        ]);
    }
    table
}
