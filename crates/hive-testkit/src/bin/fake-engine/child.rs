//! Processes that it leaves behind, and its own sudden end.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, ExitCode},
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

use crate::out::{complain, record};

/// Starts a process that leads a session of its own, and waits until it does. It keeps stdout and
/// stderr open, as a daemon that a tool started would.
pub(crate) fn start() {
    let started = std::env::current_exe().and_then(|exe| {
        let (mut mine, its) = UnixStream::pair()?;
        let child = Command::new(exe)
            .arg("fake-child")
            .stdin(OwnedFd::from(its))
            .spawn()?;
        mine.read_exact(&mut [0])?;
        Ok(child.id())
    });
    match started {
        Ok(pid) => record(&json!({"child": pid})),
        Err(error) => complain(&format!("fake-engine: no child: {error}")),
    }
}

/// What such a process does.
pub(crate) fn be() -> ExitCode {
    let ready = rustix::process::setsid()
        .map_err(io::Error::from)
        .and_then(|_| {
            let stdin = io::stdin().as_fd().try_clone_to_owned()?;
            UnixStream::from(stdin).write_all(b".")
        });
    if ready.is_err() {
        return ExitCode::FAILURE;
    }
    std::thread::sleep(Duration::from_secs(600));
    ExitCode::SUCCESS
}

/// Ends by a signal.
pub(crate) fn die(name: &str) {
    let signal = match name {
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "ABRT" => Signal::ABORT,
        _ => Signal::KILL,
    };
    kill_process(getpid(), signal).ok();
    // Some signals are answered a moment later.
    std::thread::sleep(Duration::from_secs(5));
}
