//! Forgetting what is settled and old, a little at a time.
//!
//! Only messages that are acked or discarded go; one that waits, is held or is dead stays whatever
//! its age. The newest message and the newest turn stay too, because they carry the counters of ids.
//! A row from a future that the clock has left again counts as settled now: it would never be old
//! and would keep the look at the oldest rows from getting past it.

use std::{collections::BTreeMap, time::Duration};

use rusqlite::{OptionalExtension, params};

use super::{
    Tx,
    mail::{KEY_LIFE, count},
};
use crate::Refusal;

/// How long settled things are kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Settled messages, their receipts and turns, and the statistics of turns.
    pub messages: Duration,
}

/// What one step removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Messages with their receipts.
    pub messages: u32,
    /// Turns that ended before that time.
    pub turns: u32,
    /// Rows of turn statistics.
    pub turn_counts: u32,
    /// Keys whose day has passed.
    pub keys: u32,
    /// Whether another step would find more.
    pub more: bool,
}

/// How far ahead of the clock a time may be before it is taken for a mistake of the clock.
const CLOCK_SLACK: Duration = Duration::from_secs(60 * 60);

const OLDEST_SETTLED: &str =
    "SELECT message, settled_at FROM receipts WHERE message < ?1 ORDER BY message LIMIT ?2";
const OLDEST_ENDED: &str = "SELECT seq, ended_at FROM turns WHERE seq < ?1 ORDER BY seq LIMIT ?2";
const CLAMP_MESSAGE: &str = "UPDATE receipts SET settled_at = ?2 WHERE message = ?1";
const CLAMP_TURN: &str = "UPDATE turns SET ended_at = ?2 WHERE seq = ?1";
const OLD_KEYS: &str = "DELETE FROM send_keys WHERE (sender, key) IN \
    (SELECT sender, key FROM send_keys WHERE used_at < ?1 ORDER BY used_at LIMIT ?2)";

const OLD_COMMAND_KEYS: &str = "DELETE FROM command_keys WHERE (agent, key) IN \
    (SELECT agent, key FROM command_keys WHERE used_at < ?1 ORDER BY used_at LIMIT ?2)";

struct EndedRow {
    id: i64,
    ended_at: i64,
}

#[derive(Default)]
struct Step {
    gone: u32,
    more: bool,
}

impl Tx<'_> {
    /// Removes up to `limit` rows of each kind. Ids ascend with time, so each step looks at the
    /// `limit` oldest rows only, and passes over those among them that are too young.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn prune(&mut self, retention: Retention, limit: u32) -> Result<Pruned, Refusal> {
        let oldest = self.now.minus(retention.messages).millis();
        let messages = self.prune_messages(oldest, limit)?;
        let turns = self.prune_turns(oldest, limit)?;
        let turn_counts = self.prune_turn_counts(oldest, limit)?;
        let mut keys = 0;
        for old_keys in [OLD_KEYS, OLD_COMMAND_KEYS] {
            keys += self
                .conn()?
                .prepare_cached(old_keys)?
                .execute(params![self.now.minus(KEY_LIFE).millis(), limit])?;
        }
        Ok(Pruned {
            messages: messages.gone,
            turns: turns.gone,
            turn_counts,
            keys: count(keys),
            more: messages.more || turns.more || turn_counts == limit || count(keys) >= limit,
        })
    }

    /// The id of the newest message in the table.
    pub(super) fn last_stored(&self) -> rusqlite::Result<i64> {
        let last: Option<i64> = self
            .conn()?
            .prepare_cached("SELECT max(id) FROM messages")?
            .query_row([], |row| row.get(0))?;
        Ok(last.unwrap_or(0))
    }

    fn prune_messages(&self, oldest: i64, limit: u32) -> rusqlite::Result<Step> {
        let last = self.last_stored()?;
        let seen = self.oldest_rows(OLDEST_SETTLED, last, limit)?;
        self.bring_back(CLAMP_MESSAGE, &seen)?;
        let mut step = Step::default();
        let mut forgotten: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for row in seen.iter().filter(|row| row.ended_at < oldest) {
            let parties = self
                .conn()?
                .prepare_cached("DELETE FROM messages WHERE id = ?1 RETURNING sender, recipient")?
                .query_row([row.id], |row| {
                    Ok([row.get::<_, String>(0)?, row.get::<_, String>(1)?])
                })
                .optional()?;
            self.conn()?
                .prepare_cached("DELETE FROM receipts WHERE message = ?1")?
                .execute([row.id])?;
            for party in parties.into_iter().flatten() {
                forgotten.entry(party).or_default().push(row.id);
            }
            step.gone += 1;
        }
        for (party, messages) in forgotten {
            self.forget_correspondence(&party, &messages)?;
        }
        step.more = step.gone > 0 && count(seen.len()) == limit;
        Ok(step)
    }

    fn prune_turns(&self, oldest: i64, limit: u32) -> rusqlite::Result<Step> {
        let last: Option<i64> = self
            .conn()?
            .prepare_cached("SELECT max(seq) FROM turns")?
            .query_row([], |row| row.get(0))?;
        let seen = self.oldest_rows(OLDEST_ENDED, last.unwrap_or(0), limit)?;
        self.bring_back(CLAMP_TURN, &seen)?;
        let mut step = Step::default();
        for row in seen.iter().filter(|row| row.ended_at < oldest) {
            self.conn()?
                .prepare_cached("DELETE FROM turns WHERE seq = ?1")?
                .execute([row.id])?;
            step.gone += 1;
        }
        step.more = step.gone > 0 && count(seen.len()) == limit;
        Ok(step)
    }

    /// The first rows that have ended, before the one that carries the counter.
    fn oldest_rows(&self, sql: &str, last: i64, limit: u32) -> rusqlite::Result<Vec<EndedRow>> {
        self.conn()?
            .prepare_cached(sql)?
            .query_map(params![last, limit], |row| {
                Ok(EndedRow {
                    id: row.get(0)?,
                    ended_at: row.get(1)?,
                })
            })?
            .collect()
    }

    fn bring_back(&self, sql: &str, rows: &[EndedRow]) -> rusqlite::Result<()> {
        let latest = self.now.plus(CLOCK_SLACK).millis();
        for row in rows.iter().filter(|row| row.ended_at > latest) {
            self.conn()?
                .prepare_cached(sql)?
                .execute(params![row.id, self.now.millis()])?;
        }
        Ok(())
    }
}
