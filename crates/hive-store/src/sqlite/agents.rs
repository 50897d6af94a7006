//! The registry: which agents there are, where they hang in the tree, which port is theirs, and
//! how they are meant to run.

use hive_wire::{AgentName, MessageId, Timestamp, host::Runtime};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Tx, readers::parsed};
use crate::Refusal;

/// An agent as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// Its name.
    pub name: AgentName,
    /// Its parent in the tree.
    pub parent: Option<AgentName>,
    /// Where it runs.
    pub runtime: Runtime,
    /// The port of its page.
    pub port: u16,
    /// When it was first registered.
    pub created_at: Timestamp,
    /// How it is meant to run.
    pub run: Run,
}

/// How an agent is meant to run; what really runs is for its runtime to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Whether it should run at all.
    pub wanted: Wanted,
    /// Which engine it asked for; empty for the hive's default.
    pub engine: String,
    /// Which model it asked for; empty for the hive's default.
    pub model: String,
    /// Counts restarts that were asked for: what runs under an older one is replaced.
    pub generation: u32,
    /// Why the host gave up on it.
    pub failure: Option<String>,
    /// The last message that told it of a start.
    pub notice: Option<MessageId>,
    /// How often the host started it again by itself in this generation.
    pub restarts: u32,
    /// When it last did.
    pub restarted_at: Option<Timestamp>,
}

/// Whether an agent should run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// It should not.
    #[default]
    Stopped,
    /// It should.
    Running,
    /// It should be stopped and then taken off the registry.
    Gone,
}

impl Wanted {
    fn code(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Running => 1,
            Self::Gone => 2,
        }
    }

    fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Running,
            2 => Self::Gone,
            // What a later build may have written is none of ours to start.
            _ => Self::Stopped,
        }
    }
}

const COLUMNS: &str = "SELECT name, parent, runtime, port, created_at, \
                       wanted, engine, model, generation, failure, notice, \
                       restarts, restarted_at FROM agents";

impl Tx<'_> {
    /// Registers an agent that should not run yet. One that was destroyed comes back with the date
    /// of its first time, under a new generation; which port it gets is for the caller to say (see
    /// [`Self::former_port`]).
    ///
    /// # Errors
    /// [`Refusal::Conflict`] when an agent of this name lives.
    pub fn register_agent(
        &mut self,
        name: &AgentName,
        parent: Option<&AgentName>,
        runtime: Runtime,
        port: u16,
    ) -> Result<AgentRecord, Refusal> {
        if self.agent(name)?.is_some() {
            return Err(Refusal::Conflict(format!(
                "there is an agent {name} already"
            )));
        }
        self.conn()?.execute(
            "INSERT INTO agents (name, parent, runtime, port, created_at) VALUES (?1,?2,?3,?4,?5) \
             ON CONFLICT (name) DO UPDATE SET parent = excluded.parent, \
             runtime = excluded.runtime, port = excluded.port, destroyed_at = NULL, \
             wanted = 0, engine = '', model = '', generation = generation + 1, failure = NULL, \
             restarts = 0, restarted_at = NULL",
            params![
                name.as_str(),
                parent.map(AgentName::as_str),
                runtime.as_str(),
                port,
                self.now.millis()
            ],
        )?;
        self.agent(name)?.ok_or(Refusal::NotFound {
            what: "agent",
            id: name.to_string(),
        })
    }

    /// Changes how a living agent is meant to run.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when no such agent lives.
    pub fn set_run(&mut self, name: &AgentName, run: &Run) -> Result<(), Refusal> {
        let changed = self.conn()?.execute(
            "UPDATE agents SET wanted = ?2, engine = ?3, model = ?4, generation = ?5, \
             failure = ?6, notice = ?7, restarts = ?8, restarted_at = ?9 \
             WHERE name = ?1 AND destroyed_at IS NULL",
            params![
                name.as_str(),
                run.wanted.code(),
                run.engine,
                run.model,
                run.generation,
                run.failure,
                run.notice.map(|notice| notice.0),
                run.restarts,
                run.restarted_at.map(Timestamp::millis)
            ],
        )?;
        if changed == 0 {
            return Err(Refusal::NotFound {
                what: "agent",
                id: name.to_string(),
            });
        }
        Ok(())
    }

    /// A living agent.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn agent(&self, name: &AgentName) -> Result<Option<AgentRecord>, Refusal> {
        let sql = format!("{COLUMNS} WHERE name = ?1 AND destroyed_at IS NULL");
        Ok(self
            .conn()?
            .prepare_cached(&sql)?
            .query_row([name.as_str()], record_from)
            .optional()?)
    }

    /// Every living agent, by name.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn living_agents(&self) -> Result<Vec<AgentRecord>, Refusal> {
        Ok(living(self.conn()?)?)
    }

    /// The port that an agent of this name has, or had before it was destroyed.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn former_port(&self, name: &AgentName) -> Result<Option<u16>, Refusal> {
        let mut port = self
            .conn()?
            .prepare_cached("SELECT port FROM agents WHERE name = ?1")?;
        Ok(port
            .query_row([name.as_str()], |row| row.get(0))
            .optional()?)
    }

    /// Takes an agent off the registry. Its children become roots; its mail stays.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when no such agent lives.
    pub fn destroy_agent(&mut self, name: &AgentName) -> Result<(), Refusal> {
        let gone = self.conn()?.execute(
            "UPDATE agents SET destroyed_at = ?2 WHERE name = ?1 AND destroyed_at IS NULL",
            params![name.as_str(), self.now.millis()],
        )?;
        if gone == 0 {
            return Err(Refusal::NotFound {
                what: "agent",
                id: name.to_string(),
            });
        }
        self.conn()?.execute(
            "UPDATE agents SET parent = NULL WHERE parent = ?1",
            [name.as_str()],
        )?;
        Ok(())
    }
}

pub(super) fn living(conn: &Connection) -> rusqlite::Result<Vec<AgentRecord>> {
    let sql = format!("{COLUMNS} WHERE destroyed_at IS NULL ORDER BY name");
    conn.prepare_cached(&sql)?
        .query_map([], record_from)?
        .collect()
}

fn record_from(row: &Row<'_>) -> rusqlite::Result<AgentRecord> {
    Ok(AgentRecord {
        name: parsed(row, 0)?,
        parent: row
            .get::<_, Option<String>>(1)?
            .and_then(|name| name.parse().ok()),
        runtime: Runtime::from_name(row.get_ref(2)?.as_str()?).unwrap_or_default(),
        port: row.get(3)?,
        created_at: Timestamp::from_millis(row.get(4)?),
        run: Run {
            wanted: Wanted::from_code(row.get(5)?),
            engine: row.get(6)?,
            model: row.get(7)?,
            generation: row.get(8)?,
            failure: row.get(9)?,
            notice: row.get::<_, Option<i64>>(10)?.map(MessageId),
            restarts: row.get(11)?,
            restarted_at: row.get::<_, Option<i64>>(12)?.map(Timestamp::from_millis),
        },
    })
}
