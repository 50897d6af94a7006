//! Running an engine for one turn.
//!
//! An engine is `claude`, or any command with the same contract: a prompt goes in, JSON lines come
//! out, one of them is a `result`. This module owns the process, its pipes, its timers and its end;
//! it refuses to know about mail, retries, waiting and the host. How to use it:
//!
//! ```no_run
//! # use hive_harness::engine::*;
//! # async fn turn(command: command::EngineCommand, spec: TurnSpec) -> Result<(), Box<dyn std::error::Error>> {
//! // At boot, once. `probe` says what is wrong with the engine before any turn is lost on it.
//! let profile = command.probe().await?;
//! let mut engine = Engine::new(command, profile, Options::default());
//!
//! // Per turn: begin, watch, end, classify.
//! let mut turn = engine.begin(spec).await?;
//! let handle = turn.handle(); // clone it to whoever may interrupt the turn
//! while let Some(event) = turn.next().await {
//!     // for the live view only; a slow reader gets a `Gap`, never a stalled engine
//! }
//! let ended = turn.end().await;
//! match outcome::classify(&ended) { /* ack, requeue, compact, wait … */ _ => {} }
//!
//! // When the agent has nothing to do for long, or stops:
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! Always holds:
//! - One engine process per agent at a time: [`Engine::begin`] waits for the one before it.
//! - [`Turn::end`] answers: both timers lead to a kill that reaches every descendant.
//! - Facts for [`outcome::classify`] are gathered from every line, whatever the live view misses.
//! - When the harness dies, however it dies, its engine and the engine's tools die too ([`guard`]).

pub mod command;
mod driver;
pub mod facts;
pub mod guard;
mod live;
pub mod outcome;
mod process;
mod pump;
mod skim;
mod spec;
mod stream;
mod tree;
mod turn;
mod warm;

use std::{
    ffi::OsString,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::process::sweep;
use self::{
    command::{EngineCommand, Profile, Warmth, session_args},
    driver::{Assignment, Driver, Ledger, Mode},
    process::Process,
};
pub use self::{
    spec::{AttemptId, EngineFiles, Purpose, SessionChoice, TurnSpec},
    turn::{Ended, EngineEvent, Exit, Progress, Stopped, Timeline, Turn, TurnHandle},
};

/// The two timers of a turn and the patience of a kill.
#[derive(Debug, Clone, Copy)]
pub struct Timers {
    /// How long an engine may print nothing. `claude` is legally silent for up to six minutes.
    pub silence: Duration,
    /// How long it may stay after its last line once there was a `result`.
    pub result_to_exit: Duration,
    /// How long it has to end a turn after an interrupt.
    pub interrupt_grace: Duration,
    /// How long it has after SIGTERM before everything of it is killed.
    pub term_grace: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(420),
            result_to_exit: Duration::from_secs(30),
            interrupt_grace: Duration::from_secs(5),
            term_grace: Duration::from_secs(3),
        }
    }
}

/// How engines are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The timers.
    pub timers: Timers,
    /// How long an engine stays after a turn; zero is one process per turn.
    pub linger: Duration,
    /// The command of the guard: this binary with `engine-guard`, unless a test says otherwise.
    pub guard: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timers: Timers::default(),
            linger: Duration::ZERO,
            guard: PathBuf::from("/proc/self/exe"),
        }
    }
}

/// Why a turn could not begin. Nothing ran, and nothing of the prompt reached an engine.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// A file that the engine is pointed to is missing.
    #[error(
        "cannot begin a turn: {path} cannot be read ({source}); a restart of the harness writes it anew"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The guard process could not be started.
    #[error("cannot begin a turn: {program} could not be started ({source})")]
    Spawn {
        /// The command.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The agent's engine: at most one process at a time, kept between turns or not.
///
/// Dropping it kills what runs; [`Engine::shutdown`] also waits for that.
#[derive(Debug)]
pub struct Engine {
    command: EngineCommand,
    profile: Profile,
    options: Options,
    /// Cancelled at the end; ends every turn.
    closing: CancellationToken,
    tasks: TaskTracker,
    ledger: Ledger,
    current: Option<Current>,
    /// What an earlier harness left behind was looked for.
    cleared: bool,
}

/// The process of the last turn, which may be gone by now.
#[derive(Debug)]
struct Current {
    driver: JoinHandle<()>,
    /// Takes further turns, while the process does.
    turns: mpsc::Sender<Assignment>,
    form: Form,
}

/// Everything that a process is started with and cannot be told later, its conversation left aside.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    argv: Vec<OsString>,
    files: Vec<(u64, u64, i64, i64)>,
    /// Its environment says what it is for, and with it its MCP servers know.
    is_upkeep: bool,
}

impl Engine {
    /// An engine that is started when the first turn begins.
    pub fn new(command: EngineCommand, profile: Profile, options: Options) -> Self {
        Self {
            command,
            profile,
            options,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            ledger: Ledger::default(),
            current: None,
            cleared: false,
        }
    }

    /// What the probe found out.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Kills what an earlier harness of this agent left behind when it was killed together with its
    /// guard. To be called at boot; the first turn does it otherwise.
    pub async fn clear_leftovers(&mut self) {
        self.cleared = true;
        process::sweep_leftovers(&self.command).await;
    }

    /// Begins a turn, in a new process or in the one that lingers. Waits until any earlier process
    /// that cannot be used is gone.
    ///
    /// # Errors
    /// [`BeginError`]; nothing has run then.
    pub async fn begin(&mut self, spec: TurnSpec) -> Result<Turn, BeginError> {
        if !self.cleared {
            self.clear_leftovers().await;
        }
        let warmth = match self.options.linger {
            Duration::ZERO => Warmth::Cold,
            _ if self.profile.can_linger() => Warmth::Warm,
            _ => Warmth::Cold,
        };
        let form = Form {
            argv: self.command.argv(&self.profile, &spec, warmth),
            files: fingerprints(&spec.files)?,
            is_upkeep: spec.purpose.is_upkeep(),
        };
        let (session, purpose) = (spec.session, spec.purpose);
        let (turn, assignment) = Turn::new(spec, &self.closing);
        let assignment = match self.hand_over(&form, session, assignment) {
            Ok(()) => return Ok(turn),
            Err(assignment) => assignment,
        };
        self.rest().await;
        self.start(form, (session, purpose), warmth, assignment)?;
        Ok(turn)
    }

    /// Whether an engine process is kept for the next turn.
    pub fn is_warm(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| !current.turns.is_closed())
    }

    /// Lets a lingering engine go, and waits until it is gone. The next turn starts a new one.
    pub async fn rest(&mut self) {
        let Some(Current { driver, turns, .. }) = self.current.take() else {
            return;
        };
        drop(turns);
        if let Err(error) = driver.await {
            tracing::error!(%error, "the engine's driver broke down");
        }
    }

    /// Ends what runs and waits until it is gone.
    pub async fn shutdown(mut self) {
        self.closing.cancel();
        self.rest().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Gives the turn to the process that lingers, if there is one and it fits.
    fn hand_over(
        &self,
        form: &Form,
        session: SessionChoice,
        assignment: Assignment,
    ) -> Result<(), Assignment> {
        match &self.current {
            Some(current) if session == SessionChoice::Continue && current.form == *form => {
                let sent = current.turns.try_send(assignment);
                sent.map_err(mpsc::error::TrySendError::into_inner)
            }
            _ => Err(assignment),
        }
    }

    fn start(
        &mut self,
        form: Form,
        (session, purpose): (SessionChoice, Purpose),
        warmth: Warmth,
        first: Assignment,
    ) -> Result<(), BeginError> {
        let mut argv = form.argv.clone();
        argv.extend(session_args(session).iter().map(OsString::from));
        let process = Process::start(&self.command, &argv, purpose, &self.options)?;
        let mode = match warmth {
            Warmth::Cold => Mode::Single,
            Warmth::Warm => Mode::Warm(self.options.linger),
        };
        let (turns, more) = mpsc::channel(1);
        let ledger = Ledger::clone(&self.ledger);
        let driver = Driver::new(process, mode, self.options.timers, ledger, more);
        let driver = self.tasks.spawn(driver.run(first));
        self.current = Some(Current {
            driver,
            turns,
            form,
        });
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// What tells one state of the files from another.
fn fingerprints(files: &EngineFiles) -> Result<Vec<(u64, u64, i64, i64)>, BeginError> {
    let fingerprint = |path: &Path| match path.metadata() {
        Ok(meta) => Ok((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec())),
        Err(source) => Err(BeginError::File {
            path: path.to_owned(),
            source,
        }),
    };
    [&files.settings, &files.system_prompt, &files.mcp_config]
        .into_iter()
        .map(|path| fingerprint(path))
        .collect()
}
