//! A program that serves the daemon itself and ends with it, however the daemon ends.

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    process::{Child, ChildStdin},
};

use hive_wire::host;

use crate::{
    Command, Limits, RuntimeError, failed,
    keeper::{KeeperCommand, read_output},
    order::{Agent, Lifetime, Order, Reply, hand_over, shown},
};

/// A program that runs until this is dropped or the daemon ends, whichever comes first.
#[derive(Debug)]
pub struct Companion {
    dir: PathBuf,
    keeper: Child,
    /// The keeper ends the program when this is closed; the kernel closes it if we cannot.
    lifeline: Option<ChildStdin>,
}

impl Companion {
    /// Starts a program with its record and output in `dir`, and nothing but `env` around it.
    ///
    /// # Errors
    /// With what is wrong; then nothing runs.
    pub fn start(
        keeper: &KeeperCommand,
        dir: PathBuf,
        command: Command,
        env: BTreeMap<String, String>,
    ) -> Result<Self, RuntimeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(failed(format!("make {}", shown(&dir))))?;
        let order = Order {
            cwd: dir.clone(),
            dir: dir.clone(),
            runtime: host::Runtime::Process,
            generation: 0,
            program: command.program.clone(),
            args: command.args,
            env,
            output_bytes: Limits::default().output_bytes,
            lifetime: Lifetime::OfItsStarter,
            stage: None,
            groups: Vec::new(),
            unbounded: Vec::new(),
            agent: Agent::Program,
        };
        let about = shown(&command.program);
        let (mut child, lifeline, reply) = hand_over(keeper, &about, &order)
            .map_err(failed(format!("start {}", shown(&keeper.program))))?;
        let reason = match reply {
            Reply::Started { .. } => {
                return Ok(Self {
                    dir,
                    keeper: child,
                    lifeline: Some(lifeline),
                });
            }
            Reply::Unrunnable { reason } | Reply::Failed { reason } => reason,
            Reply::Busy => "another one is still running".to_owned(),
        };
        child.wait().map_err(failed("wait for a keeper"))?;
        Err(RuntimeError::Program {
            program: command.program,
            reason,
        })
    }

    /// Whether it has ended by itself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.keeper.try_wait()?.is_some())
    }

    /// Its newest output.
    ///
    /// # Errors
    /// Those of the system.
    pub fn output(&self, max: usize) -> io::Result<Vec<u8>> {
        read_output(&self.dir, max)
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // The keeper kills what does not end by itself within seconds.
        if let Err(error) = self.keeper.wait() {
            tracing::warn!(%error, "cannot wait for a companion to end");
        }
    }
}
