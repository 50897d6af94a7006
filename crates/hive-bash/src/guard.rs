//! The process that stands over one task: it starts the shell and ends whatever the shell leaves.
//!
//! It adopts every orphan below it, so that a command which daemonises is still found. Its control
//! socket is its standard input: the daemon writes one order, and a line `stop` later; the guard
//! writes a line when the shell has started and one when it has ended. When the socket closes, the
//! daemon is gone, and so is everything below the guard a moment later. It ends when nothing is
//! left, and its end closes the task's output.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    os::{
        fd::AsFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::{
    io,
    process::{Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait},
};
use serde::{Deserialize, Serialize};

use crate::{tree, wire::MAX_CMD};

/// The word that makes this binary a guard.
pub const SUBCOMMAND: &str = "guard";
/// How long a command has between being told to end and being ended.
const GRACE: Duration = Duration::from_secs(5);
/// The same for what a command left behind when it ended by itself.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);
/// How long to wait before looking again for what is still there.
const AGAIN: Duration = Duration::from_millis(50);
/// The longest order, in bytes.
const MAX_ORDER: u64 = MAX_CMD as u64 * 6 + 16 * 1024;

/// What to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) cmd: String,
    pub(crate) dir: PathBuf,
    pub(crate) env_file: Option<PathBuf>,
}

/// What the guard says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The shell runs, in a process group of its own.
    Started { pid: i32 },
    /// The shell could not be started.
    Failed { why: String },
    /// The shell has ended.
    Ended {
        exit_code: Option<i32>,
        signal: Option<i32>,
    },
}

enum Event {
    /// The shell has ended.
    Ended(WaitStatus),
    /// There is no process left.
    Empty,
    /// The daemon wants the task to end.
    Stop,
    /// The daemon is gone.
    Abandoned,
}

/// Runs the guard until nothing of its task is left.
///
/// # Errors
/// When it gets no order, or cannot adopt orphans.
pub fn run() -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    let control = stdin.as_fd().try_clone_to_owned();
    let control = UnixStream::from(control.context("cannot take the control socket")?);
    let mut lines = BufReader::new(control.try_clone()?);
    let mut order = String::new();
    (&mut lines).take(MAX_ORDER).read_line(&mut order)?;
    let order: Order = serde_json::from_str(&order).context("cannot read the order")?;
    set_child_subreaper(Some(getpid())).context("cannot adopt orphans")?;

    let shell = match start(&order) {
        Ok(shell) => shell,
        Err(error) => {
            let why = format!("cannot start the shell in {}: {error}", order.dir.display());
            report(&control, &Report::Failed { why })?;
            return Ok(());
        }
    };
    let pid = shell.as_raw_nonzero().get();
    report(&control, &Report::Started { pid })?;
    let (events, inbox) = sync_channel(16);
    let reaper = {
        let events = events.clone();
        thread::spawn(move || reap(shell, &events))
    };
    // This thread ends with the process: it sits in a read until the daemon is gone.
    thread::spawn(move || listen(lines, &events));
    stand(&control, &inbox);
    reaper.join().ok();
    Ok(())
}

/// The text that the shell gets.
fn script(order: &Order) -> String {
    match &order.env_file {
        Some(file) => format!(". {}\n{}", quoted(file), order.cmd),
        None => order.cmd.clone(),
    }
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn start(order: &Order) -> std::io::Result<Pid> {
    let shell = if Path::new("/bin/sh").exists() {
        "/bin/sh"
    } else {
        "sh"
    };
    let child = Command::new(shell)
        .arg("-c")
        .arg(script(order))
        .current_dir(&order.dir)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| std::io::Error::other("the shell has no process id"))
}

fn report(mut control: &UnixStream, report: &Report) -> anyhow::Result<()> {
    let line = serde_json::to_string(report)? + "\n";
    control.write_all(line.as_bytes())?;
    Ok(())
}

/// Waits for every process that ends below the guard, adopted ones too.
fn reap(shell: Pid, events: &SyncSender<Event>) {
    loop {
        let event = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == shell => Event::Ended(status),
            Ok(_) | Err(io::Errno::INTR) => continue,
            Err(_) => Event::Empty,
        };
        let last = matches!(event, Event::Empty);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

fn listen(mut lines: BufReader<UnixStream>, events: &SyncSender<Event>) {
    loop {
        let mut line = String::new();
        let event = match (&mut lines).take(64).read_line(&mut line) {
            Ok(0) | Err(_) => Event::Abandoned,
            Ok(_) => Event::Stop,
        };
        let last = matches!(event, Event::Abandoned);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Stands over the task until nothing of it is left.
fn stand(control: &UnixStream, inbox: &Receiver<Event>) {
    let (this, nobody) = (getpid(), BTreeSet::new());
    let ask_to_end = || {
        tree::signal(this, &nobody, Signal::TERM);
        // One that is stopped could not end.
        tree::signal(this, &nobody, Signal::CONT);
    };
    let mut end_at: Option<Instant> = None;
    loop {
        let event = match end_at {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match event {
            Ok(Event::Ended(status)) => {
                let ended = Report::Ended {
                    exit_code: status.exit_status(),
                    signal: status.terminating_signal(),
                };
                if report(control, &ended).is_err() {
                    end_at = Some(Instant::now());
                    continue;
                }
                ask_to_end();
                end_at = end_at.or(Some(Instant::now() + LEFTOVER_GRACE));
            }
            Ok(Event::Stop) => {
                ask_to_end();
                end_at = end_at.or(Some(Instant::now() + GRACE));
            }
            Ok(Event::Abandoned) | Err(RecvTimeoutError::Timeout) => {
                tree::kill(this, &nobody);
                end_at = Some(Instant::now() + AGAIN);
            }
            Ok(Event::Empty) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word_whatever_is_in_it() {
        let order = Order {
            cmd: "echo hi".to_owned(),
            dir: "/".into(),
            env_file: Some("/it's a; path/bash-env.sh".into()),
        };
        assert_eq!(script(&order), ". '/it'\\''s a; path/bash-env.sh'\necho hi");
    }
}
