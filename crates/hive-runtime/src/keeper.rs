//! The keeper: a small process above one agent that outlives the daemon.
//!
//! It is what makes a plain process manageable without a container: it is the *subreaper* of
//! everything that the agent starts, so that nothing can run away from it, not even what made a
//! session of its own; it keeps the output within bounds; and it sees how the agent ended, which a
//! daemon that was restarted meanwhile could not. A `SIGTERM` goes on to the agent; a `SIGUSR1`
//! kills everything. When the agent has ended, whatever it left behind is killed, and the end is
//! written down.
//!
//! The daemon talks to a keeper by its record ([`crate::record`]) and by signals only, so that an
//! older keeper and a newer daemon get on.

mod log;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::OpenOptionsExt, process::CommandExt},
    },
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use hive_wire::Timestamp;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::{
        Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, setsid,
        wait,
    },
};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use self::log::RotatingLog;
pub(crate) use self::log::read_newest as read_output;
pub use crate::order::KeeperCommand;
use crate::{
    groups,
    kernel::{self, MARK, Process},
    order::{Agent, Lifetime, Order, Reply, Task, read_task, reply, task_line},
    record::{Exit, Record},
    stage::{self, StageOrder},
};

/// How long a program whose starter is gone gets to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How often the agent's leftovers are killed before they are left to the daemon.
const MAX_ROUNDS: u32 = 1_000;
/// A pause between two rounds.
const ROUND: Duration = Duration::from_millis(2);

/// Runs a keeper whose order comes on stdin. It is for a program's `main`, before any thread.
pub fn main() -> ExitCode {
    let task = kernel::close_inherited().and_then(|()| read_task(io::stdin()));
    let outcome = match task {
        Ok(Task::Keep(order)) => run(order),
        Ok(Task::Stage(order)) => {
            stage::complain(&stage::run(&order));
            return ExitCode::FAILURE;
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failed = Reply::Failed {
                reason: error.to_string(),
            };
            // If it cannot be said either, the exit code says it.
            reply(&mut io::stdout(), &failed).ok();
            ExitCode::FAILURE
        }
    }
}

fn run(order: Order) -> io::Result<()> {
    match setsid() {
        // Its starter made it a leader already.
        Ok(_) | Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    set_child_subreaper(Some(getpid()))?;
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(order.dir.join("lock"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return reply(&mut io::stdout(), &Reply::Busy),
        Err(error) => return Err(error.into()),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(keep(order))
}

/// The signals that a keeper reacts to.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    kill: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            kill: signal(SignalKind::user_defined1())?,
            child: signal(SignalKind::child())?,
        })
    }
}

async fn keep(order: Order) -> io::Result<()> {
    // From here on a signal is heard, and none ends us by default.
    let mut signals = Signals::listen()?;
    let mut record = begin(&order)?;
    // Written down before there is anything to lose: a daemon that starts now finds us.
    record.write(&order.dir)?;
    let mut log = RotatingLog::open(&order.dir, order.output_bytes)?;
    let (output, program) = match spawn(&order, &record.mark) {
        Ok(spawned) => spawned,
        Err(error) => {
            std::fs::remove_file(order.dir.join(crate::record::FILE))?;
            let reason = error.to_string();
            return reply(&mut io::stdout(), &Reply::Unrunnable { reason });
        }
    };
    record.program = Process::of(program)?;
    record.write(&order.dir)?;
    reply(&mut io::stdout(), &Reply::Started { pid: program })?;

    let mut output = pipe::Receiver::from_owned_fd(output)?;
    let lifeline = Lifeline::new(order.lifetime)?;
    let child = Kept {
        program,
        agent: order.agent,
    };
    let exit = supervise(child, &mut signals, &mut output, &mut log, lifeline).await;
    clear_away().await?;
    // If that fails, the next start or stop does it.
    groups::remove(&order.groups).ok();
    drain(&output, &mut log);
    record.exit = Some(exit);
    record.write(&order.dir)
}

fn begin(order: &Order) -> io::Result<Record> {
    let own = std::process::id();
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(Record {
        boot: kernel::boot_id()?,
        mark: random.iter().map(|byte| format!("{byte:02x}")).collect(),
        runtime: order.runtime,
        generation: order.generation,
        groups: order.groups.clone(),
        unbounded: order.unbounded.clone(),
        started_at: Timestamp::now(),
        keeper: Process::of(own)?.ok_or(io::ErrorKind::NotFound)?,
        program: None,
        exit: None,
    })
}

/// Starts the program, with both of its outputs in one pipe so that their order is kept.
fn spawn(order: &Order, mark: &str) -> io::Result<(OwnedFd, u32)> {
    let (output, input) = io::pipe()?;
    let mut command = match &order.stage {
        None => {
            let mut command = Command::new(&order.program);
            command.args(&order.args).current_dir(&order.cwd);
            command.stdin(Stdio::null());
            command
        }
        // This program again, which then becomes the other.
        Some(_) => {
            let mut command = Command::new("/proc/self/exe");
            command.arg0("hive-stage").args(std::env::args_os().skip(1));
            command.current_dir("/").stdin(Stdio::piped());
            command
        }
    };
    let mut child = command
        .env_clear()
        .envs(&order.env)
        .env(MARK, mark)
        .stdout(input.try_clone()?)
        .stderr(input)
        .spawn()
        .map_err(|error| explain(error, &order.cwd))?;
    if let (Some(stage), Some(mut stdin)) = (&order.stage, child.stdin.take()) {
        let order = StageOrder {
            stage: stage.clone(),
            program: order.program.clone(),
            args: order.args.clone(),
            cwd: order.cwd.clone(),
        };
        // One that ended early has said why, and how it ended is seen below.
        stdin.write_all(&task_line(&Task::Stage(order))?).ok();
    }
    Ok((output.into(), child.id()))
}

/// The same error for a missing program and for a missing directory helps nobody.
fn explain(error: io::Error, cwd: &Path) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound && !cwd.is_dir() {
        return io::Error::other(format!("its directory {} is missing", cwd.display()));
    }
    error
}

/// The other end of the pipe that the order came through.
enum Lifeline {
    None,
    Held(pipe::Receiver),
}

impl Lifeline {
    fn new(lifetime: Lifetime) -> io::Result<Self> {
        match lifetime {
            Lifetime::OfItsOwn => Ok(Self::None),
            Lifetime::OfItsStarter => {
                let stdin = io::stdin().as_fd().try_clone_to_owned()?;
                Ok(Self::Held(pipe::Receiver::from_owned_fd(stdin)?))
            }
        }
    }

    /// Returns when whoever held the other end is gone.
    async fn cut(&mut self) {
        match self {
            Self::None => std::future::pending().await,
            Self::Held(pipe) => while matches!(pipe.read(&mut [0; 64]).await, Ok(1..)) {},
        }
    }
}

/// The program, which is not collected yet: its id is its own.
#[derive(Debug, Clone, Copy)]
struct Kept {
    program: u32,
    agent: Agent,
}

impl Kept {
    /// Asks the agent to end.
    fn ask(self) {
        match self.agent {
            Agent::Program => tell(self.program, Signal::TERM),
            // Below us, not below the program: some programs let go of what they start.
            Agent::InNamespace => match kernel::first_inside(std::process::id()) {
                Ok(Some(agent)) => kernel::signal(agent, Signal::TERM).unwrap_or_default(),
                // It is not there yet, or not any more.
                Ok(None) | Err(_) => tell(self.program, Signal::TERM),
            },
        }
    }

    fn exit(self, exit: Exit) -> Exit {
        match (self.agent, exit) {
            (Agent::InNamespace, Exit::Code(code @ 129..=192)) => Exit::Signal(code - 128),
            (_, exit) => exit,
        }
    }
}

/// Looks after the program until it has ended.
async fn supervise(
    child: Kept,
    signals: &mut Signals,
    output: &mut pipe::Receiver,
    log: &mut RotatingLog,
    mut lifeline: Lifeline,
) -> Exit {
    let program = child.program;
    let mut buffer = vec![0; 16 * 1024];
    let mut is_open = true;
    let mut kill_at = None;
    // It may have ended before we listened.
    let mut exit = reap(program);
    while exit.is_none() {
        // Cancel-safe: each arm waits for one thing and consumes nothing when it is dropped.
        tokio::select! {
            _ = signals.child.recv() => exit = reap(program),
            _ = signals.terminate.recv() => child.ask(),
            _ = signals.kill.recv() => tell(program, Signal::KILL),
            () = lifeline.cut() => {
                lifeline = Lifeline::None;
                child.ask();
                kill_at = Some(Box::pin(sleep(GRACE)));
            }
            () = until(&mut kill_at) => {
                kill_at = None;
                tell(program, Signal::KILL);
            }
            read = output.read(&mut buffer), if is_open => match read {
                Ok(read) if read > 0 => log.write(&buffer[..read]),
                _ => is_open = false,
            },
        }
    }
    child.exit(exit.unwrap_or(Exit::Unseen))
}

async fn until(at: &mut Option<std::pin::Pin<Box<tokio::time::Sleep>>>) {
    match at {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

/// Signals the program. Its id is its own until we collect it.
fn tell(program: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(program).ok().and_then(Pid::from_raw) {
        // The only error left is that it has just ended.
        kill_process(pid, signal).ok();
    }
}

/// Collects every child that has ended, also those that we only inherited; how the program ended,
/// when it is among them.
fn reap(program: u32) -> Option<Exit> {
    let mut exit = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if u32::try_from(pid.as_raw_nonzero().get()) == Ok(program) {
            exit = Some(exit_of(status));
        }
    }
    exit
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unseen,
    }
}

/// Kills what the program left behind: all of it is below us, because we are its subreaper.
async fn clear_away() -> io::Result<()> {
    for _ in 0..MAX_ROUNDS {
        let none_left = kernel::kill_descendants(std::process::id())?;
        reap(0);
        if none_left {
            return Ok(());
        }
        sleep(ROUND).await;
    }
    Err(io::Error::other("the agent's processes do not end"))
}

/// Takes the output that is left in the pipe.
fn drain(output: &pipe::Receiver, log: &mut RotatingLog) {
    let mut buffer = vec![0; 16 * 1024];
    // Read directly: what came last may not have reached the event loop. Bounded by what fits into
    // a pipe, because all who could write are gone.
    while let Ok(read @ 1..) = rustix::io::read(output, &mut buffer) {
        log.write(&buffer[..read]);
    }
}
