//! Who begins no turn: the whole hive, or single agents, each for one or more causes.

use hive_wire::{
    Timestamp,
    host::{PauseCause, PauseRow},
};
use rusqlite::{Connection, Row, params};

use super::{Tx, readers::Readers};
use crate::Refusal;

const ALL: &str = "SELECT who, cause, since, reason FROM pauses ORDER BY who, cause";

impl Tx<'_> {
    /// Pauses an agent, or the hive when `who` is empty; whether it was not paused for this cause
    /// before. The first time and reason of a cause stay.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn pause(&mut self, who: &str, cause: PauseCause, reason: &str) -> Result<bool, Refusal> {
        let added = self
            .conn()?
            .prepare_cached("INSERT INTO pauses VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
            .execute(params![who, cause.as_str(), self.now.millis(), reason])?;
        Ok(added > 0)
    }

    /// Ends a pause for one cause, or for every cause; whether there was one.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn resume(&mut self, who: &str, cause: Option<PauseCause>) -> Result<bool, Refusal> {
        let removed = match cause {
            Some(cause) => self
                .conn()?
                .prepare_cached("DELETE FROM pauses WHERE who = ?1 AND cause = ?2")?
                .execute(params![who, cause.as_str()])?,
            None => self
                .conn()?
                .prepare_cached("DELETE FROM pauses WHERE who = ?1")?
                .execute([who])?,
        };
        Ok(removed > 0)
    }

    /// Ends every pause of a cause that began before a time; whom that concerns.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn resume_older(
        &mut self,
        cause: PauseCause,
        before: Timestamp,
    ) -> Result<Vec<String>, Refusal> {
        let ended = self
            .conn()?
            .prepare_cached("DELETE FROM pauses WHERE cause = ?1 AND since < ?2 RETURNING who")?
            .query_map(params![cause.as_str(), before.millis()], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(ended)
    }
}

impl Tx<'_> {
    /// Every pause in force.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn pauses(&self) -> Result<Vec<PauseRow>, Refusal> {
        Ok(all(self.conn()?)?)
    }
}

impl Readers {
    /// Every pause in force.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn pauses(&self) -> rusqlite::Result<Vec<PauseRow>> {
        self.with(all)
    }
}

fn all(conn: &Connection) -> rusqlite::Result<Vec<PauseRow>> {
    conn.prepare_cached(ALL)?.query_map([], row)?.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<PauseRow> {
    let who: String = row.get(0)?;
    let cause: String = row.get(1)?;
    Ok(PauseRow {
        agent: who.parse().ok(),
        cause: match cause.as_str() {
            "budget" => PauseCause::Budget,
            _ => PauseCause::Operator,
        },
        since: Timestamp::from_millis(row.get(2)?),
        reason: row.get(3)?,
    })
}
