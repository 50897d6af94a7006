//! `process`: an agent as a plain process of the host. No isolation whatsoever: it can do what the
//! daemon's user can do.

use std::path::{Path, PathBuf};

use hive_wire::{AgentName, host};

use crate::{
    AgentDirs, AgentSpec, Owner, RuntimeError, View,
    keeper::KeeperCommand,
    kept::{Kept, Launch, Tool, check_program},
    order::Agent,
    stage::Stage,
};

/// Runs agents as plain processes.
pub type ProcessRuntime = Kept<Process>;

/// No tool at all.
#[derive(Debug)]
pub struct Process;

impl ProcessRuntime {
    /// The runtime of the agents whose directories lie in `agents`.
    pub fn new(agents: PathBuf, keeper: KeeperCommand) -> Self {
        Self::with(Process, agents, keeper)
    }
}

impl Tool for Process {
    fn kind(&self) -> host::Runtime {
        host::Runtime::Process
    }

    fn view(&self, dirs: &AgentDirs) -> View {
        View {
            // Where paths are short enough for sockets.
            bash_socket: dirs.run.join("bash.sock"),
            dirs: dirs.clone(),
        }
    }

    fn launch(&self, spec: &AgentSpec, _: &Path) -> Result<Launch, RuntimeError> {
        check_program(&spec.command.program, &spec.command.program)?;
        Ok(Launch {
            program: spec.command.program.clone(),
            args: spec.command.args.clone(),
            env: spec.env.clone(),
            cwd: spec.dirs.state.clone(),
            stage: Some(Stage::plain(Owner::Daemon)),
            agent: Agent::Program,
        })
    }

    fn clear(&self, _: &AgentName, _: &Path) -> Result<(), RuntimeError> {
        Ok(())
    }
}
