//! Turns on disk: opened, ended one way, and remembered so that a late ack is told the truth.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use foldhash::{HashMap, HashMapExt};
use hive_wire::{
    AgentName, TurnId,
    agent::{TurnClosed, TurnResult},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{Tx, books::OpenTurn, redo::Statement};
use crate::Refusal;

/// How many turns are remembered by name, counted over the whole hive.
///
/// An SQL index on (agent, name) would dirty one page per agent in every group commit; this map
/// costs a few megabytes and one scan at the start.
const REMEMBERED: u32 = 100_000;

/// How a turn ended, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Acked = 1,
    Requeued = 2,
    Displaced = 3,
}

/// Finds the row of a turn that ended, by agent and name.
#[derive(Debug)]
pub(super) struct TurnIndex {
    hasher: RandomState,
    /// The newest row under each hash. A hit is checked against the row itself.
    rows: HashMap<u64, i64>,
}

impl TurnIndex {
    pub(super) fn load(conn: &Connection) -> rusqlite::Result<Self> {
        let mut index = Self {
            hasher: RandomState::new(),
            rows: HashMap::new(),
        };
        let mut newest = conn.prepare(
            "SELECT seq, agent, name FROM (SELECT seq, agent, name FROM turns ORDER BY seq DESC \
             LIMIT ?1) ORDER BY seq",
        )?;
        let mut rows = newest.query([REMEMBERED])?;
        while let Some(row) = rows.next()? {
            let key = index.key(row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            index.rows.insert(key, row.get(0)?);
        }
        Ok(index)
    }

    fn insert(&mut self, agent: &str, name: &str, seq: i64) {
        if self.rows.len() >= REMEMBERED as usize * 2 {
            let oldest = seq - i64::from(REMEMBERED);
            self.rows.retain(|_, seq| *seq > oldest);
        }
        let key = self.key(agent, name);
        self.rows.insert(key, seq);
    }

    fn find(&self, agent: &str, name: &str) -> Option<i64> {
        self.rows.get(&self.key(agent, name)).copied()
    }

    fn key(&self, agent: &str, name: &str) -> u64 {
        self.hasher.hash_one((agent, name))
    }
}

impl Tx<'_> {
    /// The id of the agent's open turn.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn open_turn_id(&mut self, agent: &AgentName) -> Result<Option<TurnId>, Refusal> {
        Ok(self.open_turn(agent)?.map(|open| open.name.clone()))
    }

    /// The agent's open turn.
    pub(super) fn open_turn(
        &mut self,
        agent: &AgentName,
    ) -> rusqlite::Result<Option<Arc<OpenTurn>>> {
        Ok(self
            .books
            .inbox(self.on_demand, agent.as_str())?
            .open
            .clone())
    }

    /// The open turn, when `turn` is its name or `current`.
    pub(super) fn open_turn_named(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
    ) -> Result<Option<Arc<OpenTurn>>, Refusal> {
        let open = self.open_turn(agent)?;
        if turn.is_current() {
            return open.map(Some).ok_or(Refusal::NoOpenTurn);
        }
        Ok(open.filter(|open| open.name == *turn))
    }

    /// Opens a turn in mind only; it is written before anything is answered.
    pub(super) fn open_in_mind(
        &mut self,
        agent: &AgentName,
        name: &TurnId,
    ) -> rusqlite::Result<Arc<OpenTurn>> {
        let open = Arc::new(OpenTurn {
            name: name.clone(),
            opened_at: self.now,
            has_row: false,
            held: Vec::new(),
        });
        self.books.inbox_mut(self.on_demand, agent.as_str())?.open = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Changes the open turn in mind, along with its rows.
    pub(super) fn change_open_turn(
        &mut self,
        agent: &AgentName,
        change: impl FnOnce(&mut OpenTurn),
    ) -> rusqlite::Result<()> {
        let inbox = self.books.inbox_mut(self.on_demand, agent.as_str())?;
        if let Some(open) = &mut inbox.open {
            change(Arc::make_mut(open));
        }
        Ok(())
    }

    /// Gives the open turn a row of its own, unless it is on disk already.
    pub(super) fn write_turn(
        &mut self,
        agent: &AgentName,
        open: &OpenTurn,
    ) -> rusqlite::Result<()> {
        if open.is_on_disk() {
            return Ok(());
        }
        self.change(
            Statement::OpenTurn,
            &[
                agent.as_str().into(),
                open.name.as_str().into(),
                open.opened_at.millis().into(),
            ],
        )?;
        self.change_open_turn(agent, |open| open.has_row = true)
    }

    /// Moves the open turn to those that ended, under the number `seq`.
    pub(super) fn end_turn(
        &mut self,
        agent: &AgentName,
        open: &OpenTurn,
        seq: i64,
        outcome: Outcome,
        closed: &TurnClosed,
    ) -> rusqlite::Result<()> {
        if open.has_row {
            self.change(Statement::CloseTurn, &[agent.as_str().into()])?;
        }
        self.change(
            Statement::EndTurn,
            &[
                seq.into(),
                agent.as_str().into(),
                open.name.as_str().into(),
                open.opened_at.millis().into(),
                self.now.millis().into(),
                (outcome as i64).into(),
                closed.acked.into(),
                closed.requeued.into(),
                closed.dead.into(),
            ],
        )?;
        self.books
            .turns
            .insert(agent.as_str(), open.name.as_str(), seq);
        let inbox = self.books.inbox_mut(self.on_demand, agent.as_str())?;
        inbox.open = None;
        inbox.depth += closed.requeued;
        Ok(())
    }

    /// Whether a turn of this name was opened and has ended.
    pub(super) fn has_ended(&self, agent: &AgentName, turn: &TurnId) -> rusqlite::Result<bool> {
        Ok(self.ended_turn(agent, turn)?.is_some())
    }

    /// How a turn that is not open stands, for a caller that wanted to end it as `wanted`.
    pub(super) fn closed_turn(
        &self,
        agent: &AgentName,
        turn: &TurnId,
        wanted: Outcome,
    ) -> rusqlite::Result<TurnClosed> {
        Ok(match self.ended_turn(agent, turn)? {
            None => TurnClosed {
                result: TurnResult::Unknown,
                acked: 0,
                requeued: 0,
                dead: 0,
            },
            Some((outcome, mut closed)) => {
                if outcome == wanted as i64 {
                    closed.result = TurnResult::Already;
                }
                closed
            }
        })
    }

    fn ended_turn(
        &self,
        agent: &AgentName,
        turn: &TurnId,
    ) -> rusqlite::Result<Option<(i64, TurnClosed)>> {
        let Some(seq) = self.books.turns.find(agent.as_str(), turn.as_str()) else {
            return Ok(None);
        };
        self.conn()?
            .prepare_cached(
                "SELECT outcome, acked, requeued, dead FROM turns \
                 WHERE seq = ?1 AND agent = ?2 AND name = ?3",
            )?
            .query_row(params![seq, agent.as_str(), turn.as_str()], |row| {
                let closed = TurnClosed {
                    result: TurnResult::Superseded,
                    acked: row.get(1)?,
                    requeued: row.get(2)?,
                    dead: row.get(3)?,
                };
                Ok((row.get(0)?, closed))
            })
            .optional()
    }
}
