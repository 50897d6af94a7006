//! What agents spent by the host's own count, and how each day's budget stands.
//!
//! Sums by agent and day in UTC, kept as long as the sums of turns. The store adds up and
//! remembers; what a budget is and what follows from it is the caller's to say.

use hive_wire::{AgentName, QuestionId, Timestamp, host::DaySpend};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    Tx,
    readers::{Readers, parsed},
    reports::{TOTAL_DAYS, day_name, day_of, natural, number},
};
use crate::Refusal;

const ADD_UP: &str = "INSERT INTO model_spend VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7) \
    ON CONFLICT (day, agent) DO UPDATE SET calls = calls + 1, \
    input_tokens = input_tokens + excluded.input_tokens, \
    output_tokens = output_tokens + excluded.output_tokens, \
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens, \
    cache_creation_tokens = cache_creation_tokens + excluded.cache_creation_tokens, \
    cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd";
const OF_DAY: &str = "SELECT agent, day, calls, input_tokens, output_tokens, cache_read_tokens, \
    cache_creation_tokens, cost_micro_usd FROM model_spend WHERE day = ?1 ORDER BY agent";
const OF_DAYS: &str = "SELECT agent, day, calls, input_tokens, output_tokens, cache_read_tokens, \
    cache_creation_tokens, cost_micro_usd FROM model_spend WHERE day > ?1 \
    ORDER BY day DESC, agent LIMIT 2000";

/// What one call cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCost {
    /// Read at the full price.
    pub input_tokens: u64,
    /// Produced.
    pub output_tokens: u64,
    /// Read from the cache.
    pub cache_read_tokens: u64,
    /// Written to the cache.
    pub cache_creation_tokens: u64,
    /// Millionths of a US dollar.
    pub cost_micro_usd: u64,
}

/// How the budget of one day stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetDay {
    /// Whether the operator knows that most of it is gone.
    pub noted: bool,
    /// The question about its cap.
    pub question: Option<QuestionId>,
    /// How often the cap was granted once more.
    pub raises: u32,
}

impl Tx<'_> {
    /// Adds what a call cost to the sums of the group's day.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn add_spend(&mut self, agent: &AgentName, cost: &CallCost) -> Result<(), Refusal> {
        self.conn()?.prepare_cached(ADD_UP)?.execute(params![
            day_of(self.now),
            agent.as_str(),
            number(cost.input_tokens),
            number(cost.output_tokens),
            number(cost.cache_read_tokens),
            number(cost.cache_creation_tokens),
            number(cost.cost_micro_usd),
        ])?;
        Ok(())
    }

    /// What everybody spent on the group's day.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn spend_today(&self) -> Result<Vec<DaySpend>, Refusal> {
        Ok(read(self.conn()?, OF_DAY, day_of(self.now))?)
    }

    /// How a budget of the group's day stands; `who` is an agent, or empty for the hive.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn budget_day(&self, who: &str) -> Result<BudgetDay, Refusal> {
        let found = self
            .conn()?
            .prepare_cached(
                "SELECT noted, question, raises FROM budget_days WHERE day = ?1 AND who = ?2",
            )?
            .query_row(params![day_of(self.now), who], budget_day)
            .optional()?;
        Ok(found.unwrap_or_default())
    }

    /// Keeps how a budget of the group's day stands.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn set_budget_day(&mut self, who: &str, budget: &BudgetDay) -> Result<(), Refusal> {
        self.conn()?
            .prepare_cached("INSERT OR REPLACE INTO budget_days VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                day_of(self.now),
                who,
                budget.noted,
                budget.question.map(|question| question.0),
                budget.raises
            ])?;
        Ok(())
    }

    /// Whose budget a question is about, if it is about one of the group's day.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn budget_of_question(&self, question: QuestionId) -> Result<Option<String>, Refusal> {
        let found = self
            .conn()?
            .prepare_cached("SELECT who FROM budget_days WHERE question = ?1 AND day = ?2")?
            .query_row(params![question.0, day_of(self.now)], |row| row.get(0))
            .optional()?;
        Ok(found)
    }

    /// Removes sums and budgets that are too old.
    pub(super) fn prune_spend(&self) -> rusqlite::Result<()> {
        let last_day = day_of(self.now) - i64::from(TOTAL_DAYS);
        for sql in [
            "DELETE FROM model_spend WHERE day <= ?1",
            "DELETE FROM budget_days WHERE day <= ?1",
        ] {
            self.conn()?.prepare_cached(sql)?.execute([last_day])?;
        }
        Ok(())
    }
}

impl Readers {
    /// What everybody spent in the last `days` days up to the day of `now`, newest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn spend(&self, days: u32, now: Timestamp) -> rusqlite::Result<Vec<DaySpend>> {
        let after = day_of(now) - i64::from(days);
        self.with(|conn| read(conn, OF_DAYS, after))
    }

    /// How a budget of the day of `now` stands.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn budget_day(&self, who: &str, now: Timestamp) -> rusqlite::Result<BudgetDay> {
        let sql = "SELECT noted, question, raises FROM budget_days WHERE day = ?1 AND who = ?2";
        self.with(|conn| {
            let mut statement = conn.prepare_cached(sql)?;
            let found = statement.query_row(params![day_of(now), who], budget_day);
            Ok(found.optional()?.unwrap_or_default())
        })
    }
}

fn read(conn: &Connection, sql: &str, day: i64) -> rusqlite::Result<Vec<DaySpend>> {
    conn.prepare_cached(sql)?
        .query_map([day], day_spend)?
        .collect()
}

fn day_spend(row: &Row<'_>) -> rusqlite::Result<DaySpend> {
    Ok(DaySpend {
        agent: parsed(row, 0)?,
        day: day_name(row.get(1)?),
        calls: natural(row, 2)?,
        input_tokens: natural(row, 3)?,
        output_tokens: natural(row, 4)?,
        cache_read_tokens: natural(row, 5)?,
        cache_creation_tokens: natural(row, 6)?,
        cost_micro_usd: natural(row, 7)?,
    })
}

fn budget_day(row: &Row<'_>) -> rusqlite::Result<BudgetDay> {
    Ok(BudgetDay {
        noted: row.get(0)?,
        question: row.get::<_, Option<i64>>(1)?.map(QuestionId),
        raises: row.get(2)?,
    })
}
