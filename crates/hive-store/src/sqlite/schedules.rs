//! Scheduled prompts: one-shot or recurring. When a recurring one is next due is its caller's
//! arithmetic; the store only keeps the time.

use hive_wire::{AgentName, ScheduleId, Timestamp};
use rusqlite::{Connection, Row, params};

use super::{Tx, readers::parsed};
use crate::Refusal;

/// A prompt that is to be scheduled.
#[derive(Debug, Clone)]
pub struct NewSchedule {
    /// Whose inbox it goes to.
    pub agent: AgentName,
    /// What it says.
    pub prompt: String,
    /// When it recurs; none for one that fires once.
    pub cron: Option<String>,
    /// The time zone of the recurrence.
    pub time_zone: Option<String>,
    /// When it fires next.
    pub next_at: Timestamp,
}

/// A scheduled prompt.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Its id.
    pub id: ScheduleId,
    /// What was scheduled, with the time it fires next.
    pub schedule: NewSchedule,
    /// When it was made.
    pub created_at: Timestamp,
}

const COLUMNS: &str =
    "SELECT id, agent, prompt, cron, time_zone, next_at, created_at FROM schedules";

impl Tx<'_> {
    /// Schedules a prompt.
    ///
    /// # Errors
    /// [`Refusal::TooMany`] when the agent has `limit` of them.
    pub fn schedule(&mut self, new: &NewSchedule, limit: u32) -> Result<ScheduleId, Refusal> {
        let count: u32 = self
            .conn
            .prepare_cached("SELECT count(*) FROM schedules WHERE agent = ?1")?
            .query_row([new.agent.as_str()], |row| row.get(0))?;
        if count >= limit {
            return Err(Refusal::TooMany {
                what: "schedules",
                limit,
            });
        }
        self.conn.execute(
            "INSERT INTO schedules (agent, prompt, cron, time_zone, next_at, created_at) \
             VALUES (?1,?2,?3,?4,?5,?6)",
            params![
                new.agent.as_str(),
                new.prompt,
                new.cron,
                new.time_zone,
                new.next_at.millis(),
                self.now.millis()
            ],
        )?;
        Ok(ScheduleId(self.conn.last_insert_rowid()))
    }

    /// Deletes a schedule of this agent.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the agent has no such schedule.
    pub fn cancel_schedule(&mut self, agent: &AgentName, id: ScheduleId) -> Result<(), Refusal> {
        let gone = self.conn.execute(
            "DELETE FROM schedules WHERE id = ?1 AND agent = ?2",
            params![id.0, agent.as_str()],
        )?;
        if gone == 1 {
            Ok(())
        } else {
            Err(Refusal::NotFound {
                what: "schedule",
                id: id.to_string(),
            })
        }
    }

    /// The schedules that are due, at most a hundred.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn due_schedules(&self) -> Result<Vec<Schedule>, Refusal> {
        let sql = format!("{COLUMNS} WHERE next_at <= ?1 ORDER BY next_at, id LIMIT 100");
        let rows: rusqlite::Result<_> = self
            .conn
            .prepare_cached(&sql)?
            .query_map([self.now.millis()], from_row)?
            .collect();
        rows.map_err(Refusal::Sqlite)
    }

    /// Notes that a schedule fired: it fires again at `next`, or never.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn fired(&mut self, id: ScheduleId, next: Option<Timestamp>) -> Result<(), Refusal> {
        match next {
            Some(next) => self.conn.execute(
                "UPDATE schedules SET next_at = ?2 WHERE id = ?1",
                params![id.0, next.millis()],
            )?,
            None => self
                .conn
                .execute("DELETE FROM schedules WHERE id = ?1", [id.0])?,
        };
        Ok(())
    }
}

pub(super) fn all(conn: &Connection, limit: u32) -> rusqlite::Result<Vec<Schedule>> {
    let sql = format!("{COLUMNS} ORDER BY next_at, id LIMIT ?1");
    conn.prepare_cached(&sql)?
        .query_map([limit], from_row)?
        .collect()
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    Ok(Schedule {
        id: ScheduleId(row.get(0)?),
        schedule: NewSchedule {
            agent: parsed(row, 1)?,
            prompt: row.get(2)?,
            cron: row.get(3)?,
            time_zone: row.get(4)?,
            next_at: Timestamp::from_millis(row.get(5)?),
        },
        created_at: Timestamp::from_millis(row.get(6)?),
    })
}
