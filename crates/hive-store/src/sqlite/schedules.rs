//! Scheduled prompts: one-shot or recurring. When a recurring one is next due is its caller's
//! arithmetic; the store only keeps the time.

use hive_wire::{AgentName, MessageId, ScheduleId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

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
    /// When it fired last.
    pub fired_at: Option<Timestamp>,
    /// The message that it sent then.
    pub message: Option<MessageId>,
    /// How often it was left out since.
    pub missed: u32,
}

/// What became of a schedule that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firing {
    /// It sent this message.
    Sent(MessageId),
    /// It sent nothing; so often it is left out since it last did.
    LeftOut(u32),
}

const COLUMNS: &str = "SELECT id, agent, prompt, cron, time_zone, next_at, created_at, fired_at, \
                       message, missed FROM schedules";

impl Tx<'_> {
    /// Schedules a prompt.
    ///
    /// # Errors
    /// [`Refusal::TooMany`] when the agent has `limit` of them.
    pub fn schedule(&mut self, new: &NewSchedule, limit: u32) -> Result<ScheduleId, Refusal> {
        let count: u32 = self
            .conn()?
            .prepare_cached("SELECT count(*) FROM schedules WHERE agent = ?1")?
            .query_row([new.agent.as_str()], |row| row.get(0))?;
        if count >= limit {
            return Err(Refusal::TooMany {
                what: "schedules",
                limit,
            });
        }
        self.conn()?.execute(
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
        Ok(ScheduleId(self.conn()?.last_insert_rowid()))
    }

    /// Deletes a schedule of this agent, or of anybody when none is named; the row as it was.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such schedule, or it is another's.
    pub fn cancel_schedule(
        &mut self,
        agent: Option<&AgentName>,
        id: ScheduleId,
    ) -> Result<Schedule, Refusal> {
        let found = self
            .conn()?
            .prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?
            .query_row([id.0], from_row)
            .optional()?
            .filter(|row| agent.is_none_or(|agent| *agent == row.schedule.agent));
        let row = found.ok_or(Refusal::NotFound {
            what: "schedule",
            id: id.to_string(),
        })?;
        self.conn()?
            .execute("DELETE FROM schedules WHERE id = ?1", [id.0])?;
        Ok(row)
    }

    /// The schedules of one agent, the next one first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn schedules_of(&self, agent: &AgentName) -> Result<Vec<Schedule>, Refusal> {
        let sql = format!("{COLUMNS} WHERE agent = ?1 ORDER BY next_at, id LIMIT 200");
        let rows: rusqlite::Result<_> = self
            .conn()?
            .prepare_cached(&sql)?
            .query_map([agent.as_str()], from_row)?
            .collect();
        rows.map_err(Refusal::Sqlite)
    }

    /// Deletes the schedules of an agent that is gone.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn clear_schedules(&mut self, agent: &AgentName) -> Result<(), Refusal> {
        self.conn()?
            .execute("DELETE FROM schedules WHERE agent = ?1", [agent.as_str()])?;
        Ok(())
    }

    /// When the next schedule is due.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn next_schedule(&self) -> Result<Option<Timestamp>, Refusal> {
        let sql = "SELECT min(next_at) FROM schedules";
        let at: Option<i64> = self
            .conn()?
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// The schedules that are due, in the order they were due, at most `limit`.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn due_schedules(&self, limit: u32) -> Result<Vec<Schedule>, Refusal> {
        let sql = format!("{COLUMNS} WHERE next_at <= ?1 ORDER BY next_at, id LIMIT ?2");
        let rows: rusqlite::Result<_> = self
            .conn()?
            .prepare_cached(&sql)?
            .query_map(params![self.now.millis(), limit], from_row)?
            .collect();
        rows.map_err(Refusal::Sqlite)
    }

    /// Notes what became of a schedule that was due: it is due again at `next`, or never.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn fired(
        &mut self,
        id: ScheduleId,
        firing: Firing,
        next: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        let Some(next) = next else {
            self.conn()?
                .execute("DELETE FROM schedules WHERE id = ?1", [id.0])?;
            return Ok(());
        };
        match firing {
            Firing::Sent(message) => self.conn()?.execute(
                "UPDATE schedules SET next_at = ?2, fired_at = ?3, message = ?4, missed = 0 \
                 WHERE id = ?1",
                params![id.0, next.millis(), self.now.millis(), message.0],
            )?,
            Firing::LeftOut(missed) => self.conn()?.execute(
                "UPDATE schedules SET next_at = ?2, missed = ?3 WHERE id = ?1",
                params![id.0, next.millis(), missed],
            )?,
        };
        Ok(())
    }
}

pub(super) fn all(
    conn: &Connection,
    agent: Option<&AgentName>,
    limit: u32,
) -> rusqlite::Result<Vec<Schedule>> {
    let sql = format!("{COLUMNS} WHERE ?2 IS NULL OR agent = ?2 ORDER BY next_at, id LIMIT ?1");
    conn.prepare_cached(&sql)?
        .query_map(params![limit, agent.map(AgentName::as_str)], from_row)?
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
        fired_at: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis),
        message: row.get::<_, Option<i64>>(8)?.map(MessageId),
        missed: row.get(9)?,
    })
}
