//! What a runtime is told about an agent, in plain types.

use std::{collections::BTreeMap, path::PathBuf};

use hive_wire::AgentName;
use serde::{Deserialize, Serialize};

/// Everything a runtime needs to start an agent.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// Who it is.
    pub name: AgentName,
    /// Which start that was asked for this belongs to.
    pub generation: u32,
    /// Its directories on the host; they exist and belong to `owner`.
    pub dirs: AgentDirs,
    /// What to run, as the agent sees it.
    pub command: Command,
    /// Its whole environment: nothing is inherited. Secrets go here, never into arguments.
    pub env: BTreeMap<String, String>,
    /// Programs of the host that it needs, bound read-only where they lie: the hive's own and the
    /// engine's. Links, script interpreters and packages they belong to are found from here.
    pub programs: Vec<PathBuf>,
    /// What else of the host it sees: the operator's choice.
    pub mounts: Vec<Mount>,
    /// What it reaches over the network.
    pub network: Network,
    /// Who it is to the host's kernel.
    pub owner: Owner,
    /// Who it is to itself.
    pub user: User,
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

/// Where an agent finds its things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Its directories.
    pub dirs: AgentDirs,
    /// Where its background shell listens: a place that it can write to, short enough for a socket.
    pub bash_socket: PathBuf,
}

/// A file or directory of the host that an agent sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it lies on the host: an absolute path without links in it.
    pub source: PathBuf,
    /// Where the agent sees it: an absolute path.
    pub target: PathBuf,
    /// Whether it may change it.
    pub access: Access,
}

/// What an agent may do with a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Look at it.
    #[default]
    ReadOnly,
    /// Change it.
    ReadWrite,
}

/// What an agent reaches over the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// A network of its own in which nobody listens; the host's gateway is a socket in `/run/hive`.
    Gateway,
    /// A network of its own, and no gateway.
    None,
    /// The host's own network, with every service that listens on its loopback address.
    #[default]
    Host,
}

/// The user that an agent's processes and files belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// The user of the daemon.
    Daemon,
    /// A user of its own, which only a daemon of root can give.
    Own {
        /// Its number, also of its group.
        uid: u32,
    },
}

/// The user that an agent is inside its container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its group's number.
    pub gid: u32,
}

impl Default for User {
    fn default() -> Self {
        Self {
            name: "agent".to_owned(),
            uid: 1000,
            gid: 1000,
        }
    }
}

/// How much an agent may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How much of its output is kept, in bytes; the oldest goes first.
    pub output_bytes: u64,
    /// Memory of all of its processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads together.
    pub pids: Option<u32>,
    /// Processor time, in hundredths of one processor.
    pub cpu_percent: Option<u32>,
    /// Files in `/tmp`, which lie in memory, in bytes.
    pub tmp_bytes: u64,
    /// The largest single file, in bytes.
    pub file_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output_bytes: 2 * 1024 * 1024,
            memory_bytes: None,
            pids: Some(4096),
            cpu_percent: None,
            tmp_bytes: 1024 * 1024 * 1024,
            file_bytes: None,
        }
    }
}
