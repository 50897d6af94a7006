//! One engine process: starting it through its guard, its pipes, and signals to it.

use std::{
    ffi::OsString,
    io,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    process::{ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
    sync::mpsc,
    task::JoinSet,
};

use super::{
    BeginError, Exit, Options, Purpose,
    command::EngineCommand,
    guard,
    pump::{self, Output},
    tree,
};

/// How many lines wait between a pump and the driver.
const OUTPUTS: usize = 16;
/// How many lines wait for the engine to read them.
const INPUTS: usize = 4;
/// The environment variable by which processes of an engine are found, whoever their parent is.
const MARK: &str = "HIVE_ENGINE_TREE";
/// What the process is for. The engine passes it on to `hive mcp`, which gives no mail to upkeep.
const PURPOSE: &str = "HIVE_TURN_PURPOSE";

/// A process that was started, with everything that belongs to it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    exit: Option<Exit>,
    mark: Vec<u8>,
    /// The guard itself was killed, so that nobody has looked after what is below it.
    lost_guard: bool,
    stdin: Option<mpsc::Sender<Vec<u8>>>,
    /// The pumps and the writer; they end with the process and are aborted with this.
    _tasks: JoinSet<()>,
}

impl Process {
    /// Starts the engine with these arguments for a turn of this kind. What it prints comes out of the channel; an
    /// [`Output::End`] for each of its two streams comes last.
    pub(super) fn start(
        command: &EngineCommand,
        argv: &[OsString],
        purpose: Purpose,
        options: &Options,
    ) -> Result<(Self, mpsc::Receiver<Output>), BeginError> {
        let grace = options.timers.term_grace.as_millis().to_string();
        let mut child = Command::new(&options.guard)
            .arg(guard::SUBCOMMAND)
            .arg(grace)
            .arg(&command.program)
            .args(argv)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .env(MARK, &command.cwd)
            .env(PURPOSE, purpose.as_str())
            .current_dir(&command.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| BeginError::Spawn {
                program: options.guard.clone(),
                source,
            })?;
        let (send, outputs) = mpsc::channel(OUTPUTS);
        let (stdin, input) = mpsc::channel(INPUTS);
        let mut tasks = JoinSet::new();
        if let Some(pipe) = child.stdin.take() {
            tasks.spawn(write(pipe, input));
        }
        if let Some(pipe) = child.stdout.take() {
            tasks.spawn(pump::stdout(pipe, send.clone()));
        }
        if let Some(pipe) = child.stderr.take() {
            tasks.spawn(pump::stderr(pipe, send));
        }
        let process = Self {
            child,
            exit: None,
            mark: mark(command),
            lost_guard: false,
            stdin: Some(stdin),
            _tasks: tasks,
        };
        Ok((process, outputs))
    }

    /// Puts bytes on their way to the engine. An engine that reads nothing, or is gone, misses them.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        if let Some(stdin) = &self.stdin
            && stdin.try_send(bytes).is_err()
        {
            tracing::debug!("the engine does not read its stdin");
        }
    }

    /// Closes the engine's stdin once everything before is written.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// How it ended, if it did and [`Self::wait`] has seen it.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Waits until the guard has ended, and with it everything below; never ends once it has.
    /// Cancel-safe.
    pub(super) async fn wait(&mut self) {
        if self.exit.is_some() {
            return std::future::pending().await;
        }
        let status = self.child.wait().await;
        self.lost_guard = status
            .as_ref()
            .is_ok_and(|status| status.signal().is_some());
        self.exit = Some(status.map_or(Exit::Signal(Signal::KILL.as_raw()), exit_of));
    }

    /// Sends a signal to the guard, which has its own idea of what to do ([`guard`]).
    pub(super) fn signal(&self, signal: Signal) {
        // There is no id once it was waited for, so that the pid is its own here.
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && let Err(error) = kill_process(pid, signal)
        {
            tracing::debug!(%error, "no signal was sent to the engine's guard");
        }
    }

    /// Kills what a guard that was killed itself has left.
    pub(super) async fn clear_up(&self) {
        if self.lost_guard {
            sweep(self.mark.clone()).await;
        }
    }
}

/// Kills whatever an earlier harness of this agent left behind.
pub(super) async fn sweep_leftovers(command: &EngineCommand) {
    sweep(mark(command)).await;
}

/// Kills every process with this entry in its environment, and everything below those.
pub(crate) async fn sweep(mark: Vec<u8>) {
    let killed = tokio::task::spawn_blocking(move || {
        let found = tree::marked(&mark).len();
        let gone = tree::kill_all(|| tree::marked(&mark), || {});
        (found, gone)
    });
    match killed.await {
        Ok((0, _)) => {}
        Ok((found, true)) => tracing::warn!(found, "killed processes that had lost their guard"),
        Ok((found, false)) => tracing::error!(found, "processes survive SIGKILL"),
        Err(error) => tracing::error!(%error, "looking for leftovers failed"),
    }
}

/// The entry in the environment of everything that runs for this agent's engine.
fn mark(command: &EngineCommand) -> Vec<u8> {
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend_from_slice(command.cwd.as_os_str().as_bytes());
    mark
}

/// The guard's status is the engine's.
fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code @ 129..=192), _) => Exit::Signal(code - 128),
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

/// Writes what comes to the engine, and closes its stdin at the end. An engine may end without
/// having read everything, or anything.
async fn write(mut pipe: ChildStdin, mut input: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = input.recv().await {
        if let Err(error) = pipe.write_all(&bytes).await {
            if error.kind() != io::ErrorKind::BrokenPipe {
                tracing::warn!(%error, "cannot write to the engine");
            }
            return;
        }
    }
}
