//! `hive engine-guard`: the process between a harness and its engine, and the engine's lifeline.
//!
//! The harness starts every engine through this guard. It leads a session of its own, adopts every
//! orphan below it (a subreaper: tools make sessions of their own, and outlive an engine that is
//! killed), and leaves only when nothing below it is left. So "the engine is gone" always means the
//! engine, its tools and whatever they left behind.
//!
//! The lifeline is the pipe that the engine's stderr goes to. Only the harness holds its reading end;
//! however the harness ends, the kernel closes it, and the guard, which watches the writing end,
//! kills everything at once. Unlike PDEATHSIG this does not hang on one thread of the harness, and
//! reaches grandchildren.
//!
//! | from the harness | what the guard does |
//! |---|---|
//! | SIGINT | passes it to the engine alone |
//! | SIGTERM | passes it to the engine alone; after the grace time everything is killed |
//! | SIGTERM again, or the lifeline ends | kills everything |
//!
//! It exits as the engine did; 128 + n stands for signal n, and 127 for an engine that could not be
//! started.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::Context;
use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, setsid,
        wait,
    },
};
use tokio::{
    io::Interest,
    net::unix::pipe,
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use super::tree;

/// The hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "engine-guard";
/// The exit code for an engine that could not be started.
const NOT_STARTED: u8 = 127;
/// How long processes that outlive their engine have after SIGTERM.
const LEFTOVER_GRACE: Duration = Duration::from_millis(250);

/// Runs the guard when this process was started as one; to be called before anything else.
pub fn main_if_called() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != SUBCOMMAND {
        return None;
    }
    Some(run(args).unwrap_or_else(|error| {
        complain(&format!("{error:#}"));
        ExitCode::from(NOT_STARTED)
    }))
}

fn run(mut args: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let grace = args.next().and_then(|ms| ms.to_str()?.parse().ok());
    let (Some(grace), Some(program)) = (grace, args.next()) else {
        anyhow::bail!("{SUBCOMMAND} is started by `hive serve` alone: GRACE_MS PROGRAM [ARG…]");
    };
    // Started from a shell it leads a group already and keeps its session; nothing depends on it.
    setsid().ok();
    set_child_subreaper(Some(getpid()))?;
    let mut engine = Command::new(program);
    engine.args(args).process_group(0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(guard(engine, Duration::from_millis(grace)))
}

async fn guard(mut engine: Command, grace: Duration) -> anyhow::Result<ExitCode> {
    let mut children = signal(SignalKind::child())?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let lifeline = Lifeline::open()?;
    let child = match engine.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = engine.get_program().to_string_lossy();
            anyhow::bail!("cannot start the engine {program}: {error}");
        }
    };
    let pid = Pid::from_child(&child);
    let mut brood = Brood::new(pid);
    let mut kill_at = None;
    loop {
        brood.reap();
        if brood.status.is_some() {
            break;
        }
        let kill_time = async {
            match kill_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // All of these are cancel-safe: a signal that is not received now is received next time.
        tokio::select! {
            _ = children.recv() => {}
            _ = interrupts.recv() => pass_on(pid, Signal::INT),
            _ = terminations.recv() => {
                if kill_at.is_some() {
                    break;
                }
                pass_on(pid, Signal::TERM);
                kill_at = Some(Instant::now() + grace);
            }
            () = kill_time => break,
            () = lifeline.lost() => break,
        }
    }
    brood.clear();
    Ok(exit_code(brood.status))
}

/// Everything below the guard.
struct Brood {
    engine: Pid,
    /// How the engine ended, once it has.
    status: Option<WaitStatus>,
    /// Nothing is left at all: orphans are the guard's children, so that it would know.
    empty: bool,
}

impl Brood {
    fn new(engine: Pid) -> Self {
        Self {
            engine,
            status: None,
            empty: false,
        }
    }

    /// Collects every child that has ended.
    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.engine => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.empty = true;
                    return;
                }
            }
        }
    }

    /// Ends everything that is left, the engine included when it has not ended.
    fn clear(&mut self) {
        let below = || tree::descendants(getpid());
        if self.status.is_some() && !self.empty {
            // The engine went by itself. What it left behind may clean up after itself, briefly.
            for process in below() {
                process.signal(Signal::TERM);
            }
            let deadline = std::time::Instant::now() + LEFTOVER_GRACE;
            while !self.empty && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
                self.reap();
            }
        }
        if !self.empty && !tree::kill_all(below, || self.reap()) {
            complain("processes of the engine are still there after SIGKILL");
        }
    }
}

/// The engine has not been waited for, so that its pid is still its own.
fn pass_on(engine: Pid, signal: Signal) {
    if let Err(error) = kill_process(engine, signal) {
        complain(&format!("cannot pass on a signal: {error}"));
    }
}

fn exit_code(status: Option<WaitStatus>) -> ExitCode {
    let code = status.and_then(|status| {
        let signal = status.terminating_signal().map(|signal| 128 + signal);
        status.exit_status().or(signal)
    });
    // Without a status the engine survived even SIGKILL.
    let code = code.and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(128 + 9))
}

/// The writing end of the pipe that the harness reads.
struct Lifeline(pipe::Sender);

impl Lifeline {
    /// Opens the pipe a second time: waiting needs it to be non-blocking, and the engine shares the
    /// first opening.
    fn open() -> anyhow::Result<Self> {
        let pipe = pipe::OpenOptions::new().open_sender("/proc/self/fd/2");
        pipe.map(Self)
            .context("stderr must be a pipe to the harness")
    }

    /// Waits until nobody holds the reading end. Cancel-safe.
    async fn lost(&self) {
        // An error while waiting leaves the other ways to end, and the harness has those too.
        if self.0.ready(Interest::ERROR).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Says something on stderr, the guard's only way to the harness.
fn complain(text: &str) {
    // The lifeline may be gone, and a panic over that would leave the engine behind.
    writeln!(io::stderr(), "engine-guard: {text}").ok();
}
