//! What agents may do and what is scheduled for them: `permissions`, `schedules`.

use hive_wire::{Timestamp, agent::ScheduleRow, host::PermissionRow};
use serde::Serialize;

/// What agents may do: `permissions`.
#[derive(Serialize)]
pub(in crate::cli) struct PermissionList<'a> {
    agents: Vec<Permissions<'a>>,
}

#[derive(Serialize)]
struct Permissions<'a> {
    name: &'a str,
    groups: Vec<&'static str>,
    capabilities: Vec<&'static str>,
    recipients: Vec<&'a str>,
    is_root: bool,
    changed_at: Option<Timestamp>,
}

impl<'a> From<&'a [PermissionRow]> for PermissionList<'a> {
    fn from(rows: &'a [PermissionRow]) -> Self {
        let agents = rows.iter().map(|row| Permissions {
            name: row.name.as_str(),
            groups: row
                .granted
                .groups
                .iter()
                .map(|word| word.as_str())
                .collect(),
            capabilities: row
                .granted
                .capabilities
                .iter()
                .map(|word| word.as_str())
                .collect(),
            recipients: row
                .granted
                .recipients
                .iter()
                .map(|to| to.as_str())
                .collect(),
            is_root: row.granted.is_root,
            changed_at: row.changed_at,
        });
        Self {
            agents: agents.collect(),
        }
    }
}

/// What is scheduled: `schedules`.
#[derive(Serialize)]
pub(in crate::cli) struct ScheduleList<'a> {
    schedules: Vec<Schedule<'a>>,
}

#[derive(Serialize)]
struct Schedule<'a> {
    id: String,
    agent: &'a str,
    prompt: &'a str,
    cron: Option<&'a str>,
    time_zone: Option<&'a str>,
    next_at: Timestamp,
    created_at: Timestamp,
    fired_at: Option<Timestamp>,
}

impl<'a> From<&'a [ScheduleRow]> for ScheduleList<'a> {
    fn from(rows: &'a [ScheduleRow]) -> Self {
        let schedules = rows.iter().map(|row| Schedule {
            id: row.schedule_id.to_string(),
            agent: row.agent.as_str(),
            prompt: &row.prompt,
            cron: row.cron.as_deref(),
            time_zone: row.time_zone.as_deref(),
            next_at: row.next_at,
            created_at: row.created_at,
            fired_at: row.fired_at,
        });
        Self {
            schedules: schedules.collect(),
        }
    }
}
