//! What agents report of themselves: a status line and the counts of their turns.
//!
//! Rows of turns are bounded by number for each agent, at once, and by age with the other chores.
//! Sums by agent and day are kept beside them, so that a question about a month reads a few rows.
//! The store takes texts and numbers as they come: cutting them is the caller's duty.

use hive_wire::{
    AgentName, Timestamp, TurnRowId,
    host::{DayTotal, TurnRow},
    report::{DEFERRED_OUTCOMES, GOOD_OUTCOMES, PostTurnCounts, TurnKind},
};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::{
    Tx,
    mail::count,
    readers::{Page, Readers, parsed},
};
use crate::Refusal;

/// A day in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;
/// For how many days sums are kept.
pub const TOTAL_DAYS: u32 = 400;
/// The most rows of sums in one answer.
const MAX_TOTALS: u32 = 2_000;

const INSERT: &str = "INSERT INTO turn_counts (agent, turn, kind, started_at, posted_at, \
    duration_ms, engine_ms, model, input_tokens, output_tokens, cache_read_tokens, \
    cache_creation_tokens, cost_micro_usd, context_tokens, window, outcome, note, session_id, \
    messages, tools) VALUES (:agent, :turn, :kind, :started_at, :posted_at, :duration_ms, \
    :engine_ms, :model, :input, :output, :cache_read, :cache_creation, :cost, :context, :window, \
    :outcome, :note, :session, :messages, :tools) ON CONFLICT DO NOTHING";
const ADD_UP: &str = "INSERT INTO turn_totals VALUES \
    (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (day, agent) DO UPDATE SET \
    turns = turns + 1, failed = failed + excluded.failed, \
    deferred = deferred + excluded.deferred, input_tokens = input_tokens + excluded.input_tokens, \
    output_tokens = output_tokens + excluded.output_tokens, \
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens, \
    cache_creation_tokens = cache_creation_tokens + excluded.cache_creation_tokens, \
    cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd, \
    duration_ms = duration_ms + excluded.duration_ms, engine_ms = engine_ms + excluded.engine_ms, \
    context_tokens = max(context_tokens, excluded.context_tokens)";
const PAGE: &str = "SELECT id, agent, turn, kind, started_at, duration_ms, engine_ms, model, \
    input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_micro_usd, \
    context_tokens, window, outcome, note, session_id, messages, tools FROM turn_counts \
    WHERE agent = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
const TOTALS: &str = "SELECT agent, day, turns, failed, deferred, input_tokens, output_tokens, \
    cache_read_tokens, cache_creation_tokens, cost_micro_usd, duration_ms, engine_ms, \
    context_tokens FROM turn_totals WHERE day > ?1 ORDER BY day DESC, agent LIMIT ?2";
const TOTALS_OF_ONE: &str = "SELECT agent, day, turns, failed, deferred, input_tokens, \
    output_tokens, cache_read_tokens, cache_creation_tokens, cost_micro_usd, duration_ms, \
    engine_ms, context_tokens FROM turn_totals WHERE day > ?1 AND agent = ?3 ORDER BY day DESC LIMIT ?2";
const OLDEST: &str = "SELECT id, agent, posted_at FROM turn_counts ORDER BY id LIMIT ?1";

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusLine {
    /// The text; empty when it says nothing.
    pub text: String,
    /// When it said so.
    pub set_at: Option<Timestamp>,
}

impl Tx<'_> {
    /// Keeps what an agent says of itself, with the time of the group.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn set_status(&mut self, agent: &AgentName, text: &str) -> Result<StatusLine, Refusal> {
        let now = self.now;
        self.conn()?
            .prepare_cached(
                "INSERT INTO agent_reports (agent, status_text, status_set_at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (agent) DO UPDATE SET status_text = ?2, status_set_at = ?3",
            )?
            .execute(params![agent.as_str(), text, now.millis()])?;
        Ok(StatusLine {
            text: text.to_owned(),
            set_at: Some(now),
        })
    }

    /// Keeps the counts of one engine run and adds them to the day's sums; whether they were new.
    /// The same (agent, turn, kind, `started_at`) is kept once. Of one agent the newest `limit`
    /// rows are kept.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn keep_turn_counts(
        &mut self,
        agent: &AgentName,
        counts: &PostTurnCounts,
        limit: u32,
    ) -> Result<bool, Refusal> {
        let (name, turn) = (agent.as_str(), counts.turn.as_str());
        let (kind, started_at) = (counts.kind.as_str(), counts.started_at.millis());
        let inserted = self
            .conn()?
            .prepare_cached(INSERT)?
            .execute(named_params! {
                ":agent": name, ":turn": turn, ":kind": kind, ":started_at": started_at,
                ":posted_at": self.now.millis(), ":duration_ms": number(counts.duration_ms),
                ":engine_ms": number(counts.engine_ms), ":model": counts.model,
                ":input": number(counts.input_tokens), ":output": number(counts.output_tokens),
                ":cache_read": number(counts.cache_read_tokens),
                ":cache_creation": number(counts.cache_creation_tokens),
                ":cost": number(counts.cost_micro_usd), ":context": number(counts.context_tokens),
                ":window": number(counts.window), ":outcome": counts.outcome, ":note": counts.note,
                ":session": counts.session_id, ":messages": json(&counts.messages),
                ":tools": json(&counts.tools),
            })?;
        if inserted == 0 {
            return Ok(false);
        }
        self.add_up(name, counts)?;
        self.keep_newest(name, limit.max(1))?;
        Ok(true)
    }

    fn add_up(&self, agent: &str, counts: &PostTurnCounts) -> rusqlite::Result<()> {
        let outcome = counts.outcome.as_str();
        let is_deferred = DEFERRED_OUTCOMES.contains(&outcome);
        let is_failed = !is_deferred && !GOOD_OUTCOMES.contains(&outcome);
        self.conn()?.prepare_cached(ADD_UP)?.execute(params![
            day_of(self.now),
            agent,
            is_failed,
            is_deferred,
            number(counts.input_tokens),
            number(counts.output_tokens),
            number(counts.cache_read_tokens),
            number(counts.cache_creation_tokens),
            number(counts.cost_micro_usd),
            number(counts.duration_ms),
            number(counts.engine_ms),
            number(counts.context_tokens),
        ])?;
        Ok(())
    }

    /// Counts a new row and lets the oldest ones of the agent go when there are too many.
    fn keep_newest(&self, agent: &str, limit: u32) -> rusqlite::Result<()> {
        let rows: i64 = self
            .conn()?
            .prepare_cached(
                "INSERT INTO agent_reports (agent, turn_rows) VALUES (?1, 1) \
                 ON CONFLICT (agent) DO UPDATE SET turn_rows = turn_rows + 1 RETURNING turn_rows",
            )?
            .query_row([agent], |row| row.get(0))?;
        let over = rows - i64::from(limit);
        if over <= 0 {
            return Ok(());
        }
        let gone = self
            .conn()?
            .prepare_cached(
                "DELETE FROM turn_counts WHERE id IN \
                 (SELECT id FROM turn_counts WHERE agent = ?1 ORDER BY id LIMIT ?2)",
            )?
            .execute(params![agent, over])?;
        self.forget_rows(agent, gone)
    }

    /// Removes up to `limit` rows that are older than `oldest`, and sums that are too old; how
    /// many rows went.
    pub(super) fn prune_turn_counts(&self, oldest: i64, limit: u32) -> rusqlite::Result<u32> {
        let rows: Vec<(i64, String, i64)> = self
            .conn()?
            .prepare_cached(OLDEST)?
            .query_map([limit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        // Rows of a time that lies ahead of the clock would never be old.
        let ahead = self.now.millis() + DAY;
        let mut gone = 0;
        for (id, agent, posted_at) in rows {
            if posted_at < oldest || posted_at > ahead {
                self.conn()?
                    .prepare_cached("DELETE FROM turn_counts WHERE id = ?1")?
                    .execute([id])?;
                self.forget_rows(&agent, 1)?;
                gone += 1;
            }
        }
        let last_day = day_of(self.now) - i64::from(TOTAL_DAYS);
        self.conn()?
            .prepare_cached("DELETE FROM turn_totals WHERE day <= ?1")?
            .execute([last_day])?;
        self.prune_spend()?;
        Ok(gone)
    }

    fn forget_rows(&self, agent: &str, gone: usize) -> rusqlite::Result<()> {
        self.conn()?
            .prepare_cached(
                "UPDATE agent_reports SET turn_rows = max(0, turn_rows - ?2) WHERE agent = ?1",
            )?
            .execute(params![agent, count(gone)])?;
        Ok(())
    }
}

impl Readers {
    /// What every agent says of itself.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn status_lines(&self) -> rusqlite::Result<Vec<(AgentName, StatusLine)>> {
        self.with(|conn| {
            conn.prepare_cached(
                "SELECT agent, status_text, status_set_at FROM agent_reports \
                 WHERE status_set_at IS NOT NULL",
            )?
            .query_map([], |row| {
                let line = StatusLine {
                    text: row.get(1)?,
                    set_at: row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis),
                };
                Ok((parsed(row, 0)?, line))
            })?
            .collect()
        })
    }

    /// The turns of an agent before a row, newest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn turn_rows(
        &self,
        agent: &AgentName,
        before: Option<TurnRowId>,
        limit: u32,
    ) -> rusqlite::Result<Page<TurnRow>> {
        let before = before.map_or(i64::MAX, |row| row.0);
        self.with(|conn| {
            let mut statement = conn.prepare_cached(PAGE)?;
            let rows = statement.query_map(
                params![agent.as_str(), before, limit.saturating_add(1)],
                turn_row,
            )?;
            Page::fill(rows, limit, |row| {
                row.counts.note.as_deref().unwrap_or_default()
            })
        })
    }

    /// The sums of the last `days` days up to the day of `now`, newest first; of one agent, or of
    /// all of them.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn turn_totals(
        &self,
        agent: Option<&AgentName>,
        days: u32,
        now: Timestamp,
    ) -> rusqlite::Result<Page<DayTotal>> {
        let after = day_of(now) - i64::from(days);
        self.with(|conn| {
            let rows = match agent {
                Some(agent) => totals(
                    conn,
                    TOTALS_OF_ONE,
                    params![after, MAX_TOTALS + 1, agent.as_str()],
                ),
                None => totals(conn, TOTALS, params![after, MAX_TOTALS + 1]),
            }?;
            Page::fill(rows.into_iter().map(Ok), MAX_TOTALS, |row| &row.day)
        })
    }

    /// How many rows of turns an agent has, by the count that is kept and by counting.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn turn_row_counts(&self, agent: &AgentName) -> rusqlite::Result<(u32, u32)> {
        self.with(|conn| {
            let kept: Option<u32> = conn
                .prepare_cached("SELECT turn_rows FROM agent_reports WHERE agent = ?1")?
                .query_row([agent.as_str()], |row| row.get(0))
                .optional()?;
            let found = conn
                .prepare_cached("SELECT count(*) FROM turn_counts WHERE agent = ?1")?
                .query_row([agent.as_str()], |row| row.get(0))?;
            Ok((kept.unwrap_or(0), found))
        })
    }
}

fn totals(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Vec<DayTotal>> {
    conn.prepare_cached(sql)?
        .query_map(params, day_total)?
        .collect()
}

fn turn_row(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    Ok(TurnRow {
        turn_row_id: TurnRowId(row.get(0)?),
        agent: parsed(row, 1)?,
        counts: PostTurnCounts {
            turn: parsed(row, 2)?,
            kind: TurnKind::from_name(row.get_ref(3)?.as_str()?).unwrap_or(TurnKind::Mail),
            started_at: Timestamp::from_millis(row.get(4)?),
            duration_ms: natural(row, 5)?,
            engine_ms: natural(row, 6)?,
            model: row.get(7)?,
            input_tokens: natural(row, 8)?,
            output_tokens: natural(row, 9)?,
            cache_read_tokens: natural(row, 10)?,
            cache_creation_tokens: natural(row, 11)?,
            cost_micro_usd: natural(row, 12)?,
            context_tokens: natural(row, 13)?,
            window: natural(row, 14)?,
            outcome: row.get(15)?,
            note: row.get(16)?,
            session_id: row.get(17)?,
            messages: list(row, 18)?,
            tools: list(row, 19)?,
        },
    })
}

fn day_total(row: &Row<'_>) -> rusqlite::Result<DayTotal> {
    Ok(DayTotal {
        agent: parsed(row, 0)?,
        day: day_name(row.get(1)?),
        turns: natural(row, 2)?,
        failed: natural(row, 3)?,
        deferred: natural(row, 4)?,
        input_tokens: natural(row, 5)?,
        output_tokens: natural(row, 6)?,
        cache_read_tokens: natural(row, 7)?,
        cache_creation_tokens: natural(row, 8)?,
        cost_micro_usd: natural(row, 9)?,
        duration_ms: natural(row, 10)?,
        engine_ms: natural(row, 11)?,
        context_tokens: natural(row, 12)?,
    })
}

fn json(list: &impl serde::Serialize) -> String {
    serde_json::to_string(list).expect("plain lists encode")
}

/// A list of a row; one that cannot be read back is shown as empty.
fn list<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<T>> {
    Ok(serde_json::from_str(row.get_ref(column)?.as_str()?).unwrap_or_default())
}

/// SQLite's numbers have a sign.
pub(super) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn natural(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

pub(super) fn day_of(time: Timestamp) -> i64 {
    time.millis().div_euclid(DAY)
}

/// `2026-01-02` for a number of days since 1970.
pub(super) fn day_name(day: i64) -> String {
    let mut name = Timestamp::from_millis(day.saturating_mul(DAY)).to_string();
    name.truncate(10);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight_in_utc() {
        for (millis, name) in [
            (0, "1970-01-01"),
            (DAY - 1, "1970-01-01"),
            (1_700_000_000_000, "2023-11-14"),
        ] {
            assert_eq!(day_name(day_of(Timestamp::from_millis(millis))), name);
        }
    }
}
