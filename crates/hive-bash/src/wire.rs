//! The commands of the daemon's socket, in the hive's own line format.

use hive_wire::{
    ErrorCode, WireError,
    command::{Command, parse_fields, unknown_command},
};
use serde::{Deserialize, Serialize};

use crate::task::{State, TaskId};

/// The longest command, in bytes: the system takes one argument of at most 128 KiB.
pub const MAX_CMD: usize = 100 * 1024;
/// The longest wait of one call, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 30;
/// How much of the end of each stream is shown, in bytes.
pub const TAIL: usize = 4 * 1024;

/// Starts a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// What `sh -c` gets.
    pub script: String,
    /// After how many seconds it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// How long to wait for its end; capped at [`MAX_WAIT_SECONDS`].
    #[serde(default)]
    pub wait_seconds: u64,
}

/// Asks how a task stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetStatus {
    /// Which one.
    pub task: TaskId,
    /// How long to wait for its end; capped at [`MAX_WAIT_SECONDS`].
    #[serde(default)]
    pub wait_seconds: u64,
}

/// Says that the agent has seen how a task ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Seen {
    /// Which one.
    pub task: TaskId,
}

/// It is noted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Noted {}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its number.
    pub task: TaskId,
    /// The command.
    pub cmd: String,
    /// Where it stands.
    pub state: State,
    /// The same in words, with how it ended.
    pub headline: String,
    /// What it returned.
    pub exit_code: Option<i32>,
    /// How long it ran, or has run.
    pub duration_ms: u64,
    /// The process group of its shell, while it runs.
    pub pid: Option<i32>,
    /// Its output.
    pub stdout: Stream,
    /// Its errors.
    pub stderr: Stream,
}

/// One stream of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The file with all of it.
    pub file: String,
    /// How many bytes the file has.
    pub bytes: u64,
    /// Its last [`TAIL`] bytes.
    pub tail: String,
}

impl Command for Run {
    const NAME: &'static str = "run";
    type Reply = TaskStatus;
}

impl Command for GetStatus {
    const NAME: &'static str = "status";
    type Reply = TaskStatus;
}

impl Command for Seen {
    const NAME: &'static str = "seen";
    type Reply = Noted;
}

/// Every command of the socket.
#[derive(Debug)]
pub enum Request {
    /// `run`
    Run(Run),
    /// `status`
    Status(GetStatus),
    /// `seen`
    Seen(Seen),
}

impl Request {
    /// Reads the command that `cmd` names from its request line.
    ///
    /// # Errors
    /// `unknown_command`, or `bad_request` with the field that is missing or wrong.
    pub fn parse(cmd: &str, line: &[u8]) -> Result<Self, WireError> {
        match cmd {
            Run::NAME => Self::run(parse_fields(line)?),
            GetStatus::NAME => parse_fields(line).map(Self::Status),
            Seen::NAME => parse_fields(line).map(Self::Seen),
            other => Err(unknown_command(other, &["run", "status", "seen"])),
        }
    }

    fn run(run: Run) -> Result<Self, WireError> {
        let refuse = |what: &str| Err(WireError::new(ErrorCode::BadRequest, what.to_owned()));
        if run.script.len() > MAX_CMD {
            let what = format!(
                "the command has {} bytes, and one has at most {MAX_CMD}",
                run.script.len()
            );
            return Err(WireError::new(ErrorCode::BadRequest, what)
                .hint("write it to a script file and run that"));
        }
        if run.script.trim().is_empty() {
            return refuse("the command is empty");
        }
        if run.script.contains('\0') {
            return refuse("a command cannot contain a NUL character");
        }
        if run.timeout_secs == Some(0) {
            return refuse("timeout_secs is at least 1; leave it out for no time-out");
        }
        Ok(Self::Run(run))
    }
}
