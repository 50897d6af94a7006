//! `GET /api/reminders` and `POST /api/reminders/cancel`: what agents have themselves reminded of.

use axum::{extract::State, response::Response};
use hive_wire::{AgentName, ReminderId, Timestamp, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Site, input::Body, output};
use crate::spill;

/// How much of a reminder is shown.
const MAX_TEXT: usize = 2_000;

#[derive(Serialize, JsonSchema)]
pub(super) struct Reminders {
    reminders: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReminderRow")]
struct Row {
    reminder_id: ReminderId,
    agent: AgentName,
    message: String,
    due_at: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct Which {
    agent: AgentName,
    reminder_id: ReminderId,
}

#[derive(Serialize)]
struct Cancelled {}

pub(super) async fn list(State(site): State<Site>) -> Response {
    let rows = site.host.broker.run(|desk| {
        let names: Vec<AgentName> = desk.roster.iter().map(|agent| agent.name.clone()).collect();
        let mut rows = Vec::new();
        for name in names {
            for reminder in desk.store(|tx| tx.reminders_of(&name))? {
                rows.push(Row {
                    reminder_id: reminder.id,
                    agent: reminder.agent,
                    message: text::shorten(&reminder.body, MAX_TEXT),
                    due_at: reminder.due_at,
                });
            }
        }
        rows.sort_by_key(|row| (row.due_at, row.reminder_id));
        Ok(Reminders { reminders: rows })
    });
    output::answer(rows.await)
}

pub(super) async fn cancel(State(site): State<Site>, Body(which): Body<Which>) -> Response {
    let state = site.host.paths.agent_dirs(&which.agent).state;
    let gone = site.host.broker.run(move |desk| {
        let Which { agent, reminder_id } = which;
        let text = desk.store(|tx| tx.cancel_reminder(&agent, reminder_id))?;
        desk.agenda_changed();
        let data = json!({"reminder_id": reminder_id});
        desk.report_agent(&agent, "reminder_cancelled", &data);
        Ok(text)
    });
    let gone = gone.await;
    if let Ok(text) = &gone
        && let Some(file) = spill::file_named(text).map(str::to_owned)
    {
        let removal = move || spill::remove(&state, &file);
        site.host.tasks.spawn_blocking(removal);
    }
    output::answer(gone.map(|_| Cancelled {}))
}
