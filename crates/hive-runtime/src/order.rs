//! What passes between whoever starts a keeper and the keeper: one line in, one line out.
//!
//! The order goes over a pipe because it holds the agent's environment: arguments can be read by
//! everybody on the machine.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use hive_wire::host;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::stage::{Stage, StageOrder};

/// The longest order, in bytes.
const MAX_ORDER: u64 = 4 * 1024 * 1024;
/// The longest reply, in bytes.
const MAX_REPLY: u64 = 64 * 1024;
/// How long a keeper may take to start its program.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a keeper is called: this program with these arguments.
#[derive(Debug, Clone)]
pub struct KeeperCommand {
    /// The program that calls [`crate::keeper::main`].
    pub program: PathBuf,
    /// The arguments that make it do so.
    pub args: Vec<String>,
}

/// What a keeper is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Where its record, its lock and the output lie.
    pub(crate) dir: PathBuf,
    pub(crate) runtime: host::Runtime,
    pub(crate) generation: u32,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    pub(crate) output_bytes: u64,
    /// Its control groups, which are removed when it has ended.
    pub(crate) groups: Vec<PathBuf>,
    /// Limits that could not be set.
    pub(crate) unbounded: Vec<String>,
    pub(crate) lifetime: Lifetime,
    /// What is done before the program begins.
    pub(crate) stage: Option<Stage>,
    /// What a request to end is sent to.
    pub(crate) agent: Agent,
}

/// What one line on stdin asks of this program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// To be a keeper.
    Keep(Order),
    /// To become a keeper's program.
    Stage(StageOrder),
}

/// Which process the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Agent {
    /// The program itself.
    Program,
    /// The child of the first process of the process namespace below the program. That one is there
    /// to collect the others, and the program to wait for it; neither hands a signal on. Its exit
    /// code tells of signals as a shell's does.
    InNamespace,
}

/// How long the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Lifetime {
    /// Until it ends or is stopped, whatever becomes of its starter.
    OfItsOwn,
    /// As long as its starter holds the pipe of the order open.
    OfItsStarter,
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The program runs.
    Started {
        pid: u32,
    },
    /// It cannot be run.
    Unrunnable {
        reason: String,
    },
    /// Another keeper has this directory.
    Busy,
    Failed {
        reason: String,
    },
}

/// Starts a keeper, gives it its order and waits for its reply.
pub(crate) fn hand_over(
    keeper: &KeeperCommand,
    about: &str,
    order: &Order,
) -> io::Result<(Child, ChildStdin, Reply)> {
    let line = task_line(&Task::Keep(order.clone()))?;
    let mut child = Command::new(&keeper.program)
        .arg0("hive-keeper")
        .args(&keeper.args)
        .arg(about)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the keeper has no pipes"));
    };
    // A keeper that ends early says more with its reply than a broken pipe does.
    let written = stdin.write_all(&line);
    match read_reply(stdout) {
        Ok(reply) => Ok((child, stdin, reply)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(written.err().unwrap_or(error))
        }
    }
}

fn read_reply(stdout: ChildStdout) -> io::Result<Reply> {
    let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    let mut ready = [PollFd::new(&stdout, PollFlags::IN)];
    if poll(&mut ready, Some(&patience))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut line = String::new();
    BufReader::new(stdout.take(MAX_REPLY)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// A task as it goes over the pipe.
pub(crate) fn task_line(task: &Task) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(task)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the task, in the program that is to do it.
pub(crate) fn read_task(from: impl Read) -> io::Result<Task> {
    let mut line = String::new();
    BufReader::new(from.take(MAX_ORDER)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Answers, from the keeper. Whoever started it may be gone; what it ordered is done all the same.
pub(crate) fn reply(to: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    match to.write_all(&line).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// A path as it is named in messages.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
