//! Reminders: fired once, by being taken out of the table in the same group that sends them.

use hive_wire::{AgentName, ReminderId, Timestamp, name::REMINDER};
use rusqlite::{OptionalExtension, Row, params};

use super::{Tx, readers::parsed};
use crate::Refusal;

/// A reminder that has not fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    /// Its id.
    pub id: ReminderId,
    /// Whose it is.
    pub agent: AgentName,
    /// What it says.
    pub body: String,
    /// When it fires.
    pub due_at: Timestamp,
}

impl Tx<'_> {
    /// Sets a reminder.
    ///
    /// # Errors
    /// [`Refusal::TooMany`] when the agent has `limit` of them.
    pub fn remind(
        &mut self,
        agent: &AgentName,
        body: &str,
        due_at: Timestamp,
        limit: u32,
    ) -> Result<ReminderId, Refusal> {
        let pending: u32 = self
            .conn()?
            .prepare_cached("SELECT count(*) FROM reminders WHERE agent = ?1")?
            .query_row([agent.as_str()], |row| row.get(0))?;
        if pending >= limit {
            return Err(Refusal::TooMany {
                what: "pending reminders",
                limit,
            });
        }
        self.conn()?.execute(
            "INSERT INTO reminders (agent, body, due_at) VALUES (?1, ?2, ?3)",
            params![agent.as_str(), body, due_at.millis()],
        )?;
        Ok(ReminderId(self.conn()?.last_insert_rowid()))
    }

    /// Deletes a reminder of this agent, and says what it would have said.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the agent has no such reminder.
    pub fn cancel_reminder(
        &mut self,
        agent: &AgentName,
        id: ReminderId,
    ) -> Result<String, Refusal> {
        let sql = "DELETE FROM reminders WHERE id = ?1 AND agent = ?2 RETURNING body";
        let gone = self
            .conn()?
            .prepare_cached(sql)?
            .query_row(params![id.0, agent.as_str()], |row| row.get(0))
            .optional()?;
        gone.ok_or_else(|| Refusal::NotFound {
            what: "reminder",
            id: id.to_string(),
        })
    }

    /// How the agent's reminders end, as far as `length` characters, that are not dealt with: they
    /// have not fired, or they wait in its inbox, in its turn or for the operator.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn open_reminder_ends(
        &self,
        agent: &AgentName,
        length: u32,
    ) -> Result<Vec<String>, Refusal> {
        let sql = "SELECT substr(body, -?2) FROM reminders WHERE agent = ?1 UNION ALL \
                   SELECT substr(m.body, -?2) FROM mail l JOIN messages m ON m.id = l.message \
                   WHERE l.recipient = ?1 AND m.sender = ?3";
        let ends: rusqlite::Result<_> = self
            .conn()?
            .prepare_cached(sql)?
            .query_map(params![agent.as_str(), length, REMINDER], |row| row.get(0))?
            .collect();
        ends.map_err(Refusal::Sqlite)
    }

    /// The agent's reminders, the next one first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn reminders_of(&self, agent: &AgentName) -> Result<Vec<Reminder>, Refusal> {
        let sql = "SELECT id, agent, body, due_at FROM reminders WHERE agent = ?1 \
                   ORDER BY due_at, id LIMIT 200";
        let rows: rusqlite::Result<_> = self
            .conn()?
            .prepare_cached(sql)?
            .query_map([agent.as_str()], from_row)?
            .collect();
        rows.map_err(Refusal::Sqlite)
    }

    /// Takes the reminders that are due out of the table, in the order they were due, at most
    /// `limit`.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn take_due_reminders(&mut self, limit: u32) -> Result<Vec<Reminder>, Refusal> {
        let sql = "SELECT id, agent, body, due_at FROM reminders WHERE due_at <= ?1 \
                   ORDER BY due_at, id LIMIT ?2";
        let due: Vec<Reminder> = self
            .conn()?
            .prepare_cached(sql)?
            .query_map(params![self.now.millis(), limit], from_row)?
            .collect::<rusqlite::Result<_>>()?;
        for reminder in &due {
            self.conn()?
                .execute("DELETE FROM reminders WHERE id = ?1", [reminder.id.0])?;
        }
        Ok(due)
    }

    /// When the next reminder is due.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn next_reminder(&self) -> Result<Option<Timestamp>, Refusal> {
        let sql = "SELECT min(due_at) FROM reminders";
        let at: Option<i64> = self
            .conn()?
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))?;
        Ok(at.map(Timestamp::from_millis))
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Reminder> {
    Ok(Reminder {
        id: ReminderId(row.get(0)?),
        agent: parsed(row, 1)?,
        body: row.get(2)?,
        due_at: Timestamp::from_millis(row.get(3)?),
    })
}
