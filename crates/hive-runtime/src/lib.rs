//! Where an agent runs: one trait, one file per runtime, one conformance suite for all of them.
//!
//! A runtime keeps no wishes: who should run is decided by its caller, who also writes that down.
//! A runtime tells the truth about what does run, starts and stops it, and makes sure that a stop
//! leaves nothing behind. What it started outlives the daemon and is found again by the next one.
//!
//! `process` is the plainest: a child without isolation. `bwrap`, `nspawn` and `podman` show an agent
//! what is in its [`plan`] and nothing else. All of these run under a [`keeper`], which is why they
//! share all but their arguments ([`kept`]). `nixos` has its containers from systemd.

pub mod bwrap;
pub mod companion;
pub mod keeper;
pub mod kept;
pub mod nixos;
pub mod nspawn;
pub mod plan;
pub mod podman;
pub mod process;
pub mod runtimes;

#[cfg(feature = "conformance")]
pub mod conformance;

mod groups;
mod kernel;
mod mount_point;
mod order;
mod programs;
mod record;
mod rootfs;
mod spec;
mod stage;
mod system;

use std::{fmt, io, os::fd::OwnedFd, path::PathBuf, time::Duration};

use hive_wire::{AgentName, Timestamp, host};

pub use bwrap::BwrapRuntime;
pub use groups::Groups;
pub use nixos::NixosRuntime;
pub use nspawn::NspawnRuntime;
pub use podman::PodmanRuntime;
pub use process::ProcessRuntime;
pub use record::Exit;
pub use runtimes::{Machine, Runtimes, Unavailable};
pub use spec::{Access, AgentDirs, AgentSpec, Command, Limits, Mount, Network, Owner, User, View};
pub use system::System;

/// A way to run agents. Every verb is idempotent and blocks: call it where blocking is fine.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Which one it is.
    fn kind(&self) -> host::Runtime;

    /// Where an agent finds its things, whose directories are these on the host.
    fn view(&self, dirs: &AgentDirs) -> View;

    /// Starts an agent. One that runs already is left as it is, whatever the specification says:
    /// its instance is returned, and the generation in it tells what it was started with.
    ///
    /// # Errors
    /// With what is wrong; then nothing runs and nothing is left behind.
    fn start(&self, spec: &AgentSpec) -> Result<Instance, RuntimeError>;

    /// Stops an agent: asks it to end, waits for `grace`, then kills it. When this returns without
    /// an error, neither it nor anything that it started is left, whether it ran or not.
    ///
    /// # Errors
    /// When something of it is still there.
    fn stop(&self, name: &AgentName, grace: Duration) -> Result<(), RuntimeError>;

    /// Every agent that runs now, by name, whoever started it.
    ///
    /// # Errors
    /// When it cannot be known.
    fn list(&self) -> Result<Vec<Instance>, RuntimeError>;

    /// An agent that runs, or how its last run ended; `None` when it never ran here.
    ///
    /// # Errors
    /// When it cannot be known.
    fn inspect(&self, name: &AgentName) -> Result<Option<Instance>, RuntimeError>;

    /// A descriptor that becomes readable when a running agent has ended; `None` when it does not
    /// run. Nobody has to poll, and no thread has to wait.
    ///
    /// # Errors
    /// When it cannot be known.
    fn watch(&self, name: &AgentName) -> Result<Option<OwnedFd>, RuntimeError>;

    /// The newest output of an agent, at most `max` bytes of whole lines. It stays readable after
    /// the agent has ended.
    ///
    /// # Errors
    /// When it cannot be read; no output is no error.
    fn output(&self, name: &AgentName, max: usize) -> Result<Vec<u8>, RuntimeError>;
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Whose.
    pub name: AgentName,
    /// What [`AgentSpec::generation`] was.
    pub generation: u32,
    /// When it was started.
    pub started_at: Timestamp,
    /// Where it stands.
    pub state: State,
    /// Limits that this host could not set, in words for the operator.
    pub unbounded: Vec<String>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It runs, as this process of the host.
    Running {
        /// The agent's own process.
        pid: u32,
    },
    /// It is over.
    Ended(Exit),
}

impl Instance {
    /// The agent's process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        match self.state {
            State::Running { pid } => Some(pid),
            State::Ended(_) => None,
        }
    }
}

/// Why a runtime could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// What the agent is to run cannot be run; trying again changes nothing.
    #[error("cannot run {program}: {reason}")]
    Program {
        /// What was to be run.
        program: PathBuf,
        /// Why it cannot.
        reason: String,
    },
    /// A mount that an agent may not have; trying again changes nothing.
    #[error("cannot mount {mount}: {reason}")]
    Mount {
        /// Where it was to be.
        mount: PathBuf,
        /// Why it cannot.
        reason: String,
    },
    /// This build has no such runtime.
    #[error("this build has no runtime `{0}`")]
    Missing(&'static str),
    /// A start or stop of the same agent is under way elsewhere; try again.
    #[error("another start of {0} is under way")]
    Busy(AgentName),
    /// Something of the agent survived being killed.
    #[error("something of {0} is still there after it was killed")]
    Stuck(AgentName),
    /// The system refused.
    #[error("cannot {doing}")]
    Io {
        /// What was attempted, with its path.
        doing: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// Names what was attempted when a system call failed.
fn failed(doing: impl Into<String>) -> impl FnOnce(io::Error) -> RuntimeError {
    let doing = doing.into();
    move |source| RuntimeError::Io { doing, source }
}

/// An error with its causes, on one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
