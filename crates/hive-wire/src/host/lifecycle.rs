//! The commands that bring agents up and down.

use serde::{Deserialize, Serialize};

use super::Runtime;
use crate::AgentName;

/// Registers an agent and, unless it runs elsewhere, starts it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spawn {
    /// Its name.
    pub name: AgentName,
    /// Its place in the tree; a root unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentName>,
    /// Where it runs.
    #[serde(default)]
    pub runtime: Runtime,
    /// `auto`, `claude`, `native` or a command; what `hive.toml` says unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its model; what `hive.toml` says unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Spawn {
    /// The spawn of an agent that runs elsewhere: it gets a socket and an inbox.
    pub fn elsewhere(name: AgentName) -> Self {
        Self {
            name,
            parent: None,
            runtime: Runtime::None,
            engine: None,
            model: None,
        }
    }
}

/// Stops an agent and leaves it stopped. Idempotent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kill {
    /// Which one.
    pub name: AgentName,
}

/// Starts an agent that is stopped or failed. Idempotent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// Which one.
    pub name: AgentName,
}

/// Stops an agent and starts it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Restart {
    /// Which one.
    pub name: AgentName,
}

/// Makes everything of an agent anew from its configuration, then stops and starts it (C7).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rebuild {
    /// Which one.
    pub name: AgentName,
}

/// Stops every agent that the hive runs and leaves them stopped.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StopAll {}

/// What is stopped now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllStopped {
    /// Those that ran until now, by name.
    pub stopped: Vec<AgentName>,
    /// Those that could not be stopped, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<StopFailure>,
}

/// An agent that could not be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopFailure {
    /// Which one.
    pub name: AgentName,
    /// Why not.
    pub reason: String,
}

/// Makes every agent anew that was made with another revision of the hive, one at a time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct UpdateAll {}

/// How far an update came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updated {
    /// Those that are up to date now.
    pub updated: Vec<AgentName>,
    /// The one that did not come up: the update stopped there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<StopFailure>,
    /// Those that were not tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<AgentName>,
}

/// Removes an agent; its mail, state and credentials stay for a later one of the same name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Destroy {
    /// Which one.
    pub name: AgentName,
    /// Also removes its files: state, notes, sessions and credentials. Its mail stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purge: bool,
}

/// The agent is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destroyed {
    /// Messages that stay in its inbox.
    pub kept_messages: u32,
    /// Whether its files are gone too.
    #[serde(default)]
    pub purged: bool,
}

/// Reads the newest output of an agent's harness.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadOutput {
    /// Which agent.
    pub name: AgentName,
    /// At most so many bytes; 64 KiB unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
}

/// What a harness wrote to stdout and stderr, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Whole lines, as far as they are text.
    pub output: String,
}

/// Tries every runtime that isolates, as far as it is not known to work.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TryRuntimes {}

/// How the runtimes stand on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeStates {
    /// What `--runtime auto` means here.
    pub best: Runtime,
    /// Why.
    pub note: String,
    /// Those that isolate, best first.
    pub runtimes: Vec<RuntimeState>,
}

/// How a runtime that isolates stands on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeState {
    /// Which one.
    pub runtime: Runtime,
    /// Why it does not work; empty when it does.
    #[serde(default)]
    pub problem: String,
    /// What to do about it.
    #[serde(default)]
    pub remedy: String,
}

/// What a new agent gets on this machine, and how the hive does for a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// What `--runtime auto` means here; `auto` until that was tried for the first time.
    pub runtime: Runtime,
    /// Why.
    pub runtime_note: String,
    /// The command that `--engine auto` means here; empty when there is none.
    pub engine: String,
    /// Why, or what is missing.
    pub engine_note: String,
    /// Whether a rehearsed model answers instead of a real one.
    pub rehearsed: bool,
}
