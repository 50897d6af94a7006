//! A turn that runs, and a turn that has ended.

use std::time::Duration;

use hive_wire::Timestamp;
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    AttemptId, Purpose, TurnSpec,
    driver::{Assignment, Control},
    facts::Facts,
    live,
};

/// How many wishes about a turn wait at most; more of them say nothing new.
const CONTROLS: usize = 4;

/// What is seen of a turn while it runs.
#[derive(Debug, Clone)]
pub enum EngineEvent {
    /// A JSON object that the engine printed, as it printed it.
    Line(Box<RawValue>),
    /// A line that is too long for the live view.
    Oversize {
        /// How long it is.
        bytes: u64,
        /// How it begins.
        head: String,
    },
    /// A line on stdout that is no JSON object.
    Stray(String),
    /// A line on stderr.
    Stderr(String),
    /// Events that the reader was too slow for.
    Gap {
        /// How many were left out here.
        dropped: u64,
    },
}

/// What can be said of a turn at any moment while it runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The size of the context at the last inference.
    pub context_tokens: Option<u64>,
    /// The tool that runs now; the first one when there are several.
    pub current_tool: Option<String>,
    /// The conversation's id.
    pub session_id: Option<String>,
    /// The engine's own version, from its first event.
    pub engine_version: Option<String>,
}

/// Why the harness ended an engine before it ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// [`TurnHandle::interrupt`].
    Interrupted,
    /// [`TurnHandle::shut_down`], or the [`Turn`] was dropped.
    ShutDown,
    /// Nothing came on its streams for [`super::Timers::silence`].
    Silent,
    /// It printed its result and then did not exit within [`super::Timers::result_to_exit`].
    Lingered,
}

/// How the engine process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal (an exit code of 128 + n says the same, as in a shell).
    Signal(i32),
    /// It is still there: a warm engine that waits for its next turn.
    Alive,
}

/// When things happened in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// When [`super::Engine::begin`] was called.
    pub started_at: Timestamp,
    /// From there until the prompt was on its way to a running engine.
    pub spawned: Duration,
    /// From the start until the first line of output.
    pub first_event: Option<Duration>,
    /// From the start until the last `result`.
    pub result: Option<Duration>,
    /// From the start until the turn was over.
    pub ended: Duration,
}

/// A turn that is over. [`super::outcome::classify`] says what it means.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The attempt.
    pub attempt: AttemptId,
    /// What it was for.
    pub purpose: Purpose,
    /// How the process ended.
    pub exit: Exit,
    /// Why the harness ended it, if it did.
    pub stopped: Option<Stopped>,
    /// The process had run a turn before this one.
    pub reused: bool,
    /// What the output said.
    pub facts: Facts,
    /// The last lines of stderr.
    pub stderr_tail: Vec<String>,
    /// When things happened.
    pub timeline: Timeline,
}

/// A turn that runs. Dropping it before [`Turn::end`] kills its engine.
#[derive(Debug)]
pub struct Turn {
    events: live::Receiver,
    progress: watch::Receiver<Progress>,
    handle: TurnHandle,
    end: oneshot::Receiver<Ended>,
    _owner: DropGuard,
    /// What is reported if the driver breaks down.
    broken: Ended,
}

impl Turn {
    /// The turn and what its driver needs. Cancelling `engine` shuts the turn down.
    pub(super) fn new(spec: TurnSpec, engine: &CancellationToken) -> (Self, Assignment) {
        let started_at = Timestamp::now();
        let (live, events) = live::queue();
        let (show, progress) = watch::channel(Progress::default());
        let (control, wishes) = mpsc::channel(CONTROLS);
        let (report, end) = oneshot::channel();
        let abandoned = engine.child_token();
        let turn = Self {
            events,
            progress,
            handle: TurnHandle { control },
            end,
            _owner: abandoned.clone().drop_guard(),
            broken: broken(&spec, started_at),
        };
        let assignment = Assignment {
            attempt: spec.attempt,
            purpose: spec.purpose,
            prompt: spec.prompt,
            started_at,
            started: Instant::now(),
            live,
            progress: show,
            control: wishes,
            abandoned,
            end: report,
        };
        (turn, assignment)
    }

    /// The next event; none once the turn is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<EngineEvent> {
        self.events.recv().await
    }

    /// Follows the turn's progress: context size, current tool, session.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Something to stop the turn with from elsewhere.
    pub fn handle(&self) -> TurnHandle {
        self.handle.clone()
    }

    /// Waits for the end, throwing away the events that are left. Dropped before, it kills the
    /// engine.
    pub async fn end(self) -> Ended {
        drop(self.events);
        self.end.await.unwrap_or(self.broken)
    }
}

/// Stops a turn from elsewhere. Does nothing once the turn is over.
#[derive(Debug, Clone)]
pub struct TurnHandle {
    control: mpsc::Sender<Control>,
}

impl TurnHandle {
    /// Asks the engine to break off; it is killed when it does not.
    pub fn interrupt(&self) {
        self.tell(Control::Interrupt);
    }

    /// Ends the engine with SIGTERM, then SIGKILL, because the harness stops.
    pub fn shut_down(&self) {
        self.tell(Control::ShutDown);
    }

    fn tell(&self, control: Control) {
        if self.control.try_send(control).is_err() {
            tracing::debug!(?control, "the turn is over, or was told already");
        }
    }
}

/// What is said of a turn whose driver did not say anything.
fn broken(spec: &TurnSpec, started_at: Timestamp) -> Ended {
    Ended {
        attempt: spec.attempt.clone(),
        purpose: spec.purpose,
        exit: Exit::Signal(0),
        stopped: None,
        reused: false,
        facts: Facts::default(),
        stderr_tail: vec!["the harness lost sight of its engine; this is a bug".to_owned()],
        timeline: Timeline {
            started_at,
            spawned: Duration::ZERO,
            first_event: None,
            result: None,
            ended: Duration::ZERO,
        },
    }
}
