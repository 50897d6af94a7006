//! What a runtime is told about an agent, in plain types.

use std::{collections::BTreeMap, path::PathBuf};

use hive_wire::AgentName;

/// Everything a runtime needs to start an agent.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// Who it is.
    pub name: AgentName,
    /// Which start that was asked for this belongs to.
    pub generation: u32,
    /// Its directories on the host; they exist.
    pub dirs: AgentDirs,
    /// What to run, as the agent sees it.
    pub command: Command,
    /// Its whole environment: nothing is inherited. Secrets go here, never into arguments.
    pub env: BTreeMap<String, String>,
    /// How much it may use.
    pub limits: Limits,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// An absolute path.
    pub program: PathBuf,
    /// What follows it. Everybody on the machine can read it.
    pub args: Vec<String>,
}

/// The directories of one agent, on the host or as the agent sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDirs {
    /// `/state`: where every turn works.
    pub state: PathBuf,
    /// `/harness`: files of the harness.
    pub harness: PathBuf,
    /// `~/.claude`: credentials and sessions of the engine.
    pub claude: PathBuf,
    /// Its home, never the operator's.
    pub home: PathBuf,
    /// `/run/hive`: the sockets to the host, read-only.
    pub run: PathBuf,
}

/// How much an agent may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How much of its output is kept, in bytes; the oldest goes first.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output_bytes: 2 * 1024 * 1024,
        }
    }
}
