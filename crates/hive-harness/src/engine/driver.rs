//! The task that owns an engine process: hands turns to it, watches them, and ends it.
//!
//! One driver per process, one turn at a time. Both ways of running an engine are here, and differ in
//! two points only ([`Mode`]): how a prompt goes in, and what ends a turn. The driver always ends:
//! every state has a deadline, and the last one is SIGKILL.

mod running;

use std::{sync::Arc, time::Duration};

use hive_wire::Timestamp;
use rustix::process::Signal;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::running::Running;
use super::{
    AttemptId, Ended, EngineEvent, Exit, Progress, Purpose, Stopped, Timers,
    facts::Total,
    live,
    process::Process,
    pump::Output,
    stream::{ResultEvent, StreamEvent},
    warm,
};

/// How long the streams may stay open after the process is gone.
const DRAIN: Duration = Duration::from_secs(2);
/// What a guard has on top of the grace time to kill everything and leave.
const KILL_MARGIN: Duration = Duration::from_secs(7);

/// What somebody wants of a running turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Control {
    Interrupt,
    ShutDown,
}

/// How prompts go in, and what ends a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The prompt is all there is on stdin; the turn ends with the process.
    Single,
    /// Prompts are JSON lines; a turn ends with the result that names its attempt. The process stays
    /// for this long after a turn.
    Warm(Duration),
}

/// A turn that is handed to a driver.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) attempt: AttemptId,
    pub(super) purpose: Purpose,
    pub(super) prompt: String,
    pub(super) started_at: Timestamp,
    pub(super) started: Instant,
    pub(super) live: live::Sender,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) control: mpsc::Receiver<Control>,
    /// Cancelled when the turn's owner is gone.
    pub(super) abandoned: CancellationToken,
    pub(super) end: oneshot::Sender<Ended>,
}

/// The cost of the session so far, carried from turn to turn.
pub(super) type Ledger = Arc<std::sync::Mutex<Option<Total>>>;

/// The owner of one process.
#[derive(Debug)]
pub(super) struct Driver {
    process: Process,
    outputs: mpsc::Receiver<Output>,
    mode: Mode,
    timers: Timers,
    ledger: Ledger,
    turn: Option<Running>,
    /// Further turns, while the process takes any.
    more: mpsc::Receiver<Assignment>,
    phase: Phase,
    /// When it was last heard of, or given something to do.
    last_sign: Instant,
    /// How many of its two streams have ended.
    ended_streams: u8,
    /// How many turns it was given.
    turns: u32,
}

/// What the process is doing, or made to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A turn runs.
    Working,
    /// A turn runs that has printed its result; the process should exit.
    Leaving,
    /// No turn runs, and the next may come.
    Idle,
    /// Its stdin is closed and it should exit, by then.
    Closing(Instant),
    /// It was asked to break off, by then.
    Interrupting(Instant),
    /// SIGTERM was sent; its guard kills the rest, by then.
    Terminating(Instant),
    /// Even its guard was killed.
    Killed(Instant),
    /// The process is gone, and its streams end, by then.
    Gone(Instant),
}

/// What a driver waits for.
enum Happening {
    Output(Option<Output>),
    Exited,
    Control(Control),
    Next(Option<Assignment>),
    Room,
    Deadline,
}

impl Driver {
    /// A driver for a process that has just been started, and the turns that come for it.
    pub(super) fn new(
        (process, outputs): (Process, mpsc::Receiver<Output>),
        mode: Mode,
        timers: Timers,
        ledger: Ledger,
        more: mpsc::Receiver<Assignment>,
    ) -> Self {
        Self {
            process,
            outputs,
            mode,
            timers,
            ledger,
            turn: None,
            more,
            phase: Phase::Idle,
            last_sign: Instant::now(),
            ended_streams: 0,
            turns: 0,
        }
    }

    /// Runs turns until the process is gone.
    pub(super) async fn run(mut self, first: Assignment) {
        if self.mode == Mode::Single {
            self.more.close();
        }
        self.begin(first);
        while !self.is_over() {
            match self.happening().await {
                Happening::Output(Some(output)) => self.output(output),
                // Both pumps are gone: nothing will come any more.
                Happening::Output(None) => self.ended_streams = 2,
                Happening::Exited => {
                    self.process.clear_up().await;
                    self.phase = Phase::Gone(Instant::now() + DRAIN);
                }
                Happening::Control(Control::Interrupt) => self.stop(Stopped::Interrupted),
                Happening::Control(Control::ShutDown) => self.stop(Stopped::ShutDown),
                Happening::Next(Some(assignment)) => self.begin(assignment),
                Happening::Next(None) => self.close(),
                Happening::Room => self.show_held(),
                Happening::Deadline => self.deadline_passed(),
            }
        }
        self.more.close();
        // One that came when the process was already on its way out.
        if let Ok(late) = self.more.try_recv() {
            self.finish();
            self.begin(late);
        }
        self.finish();
    }

    /// Waits for the next thing to happen. Every arm is cancel-safe: channels keep what was not
    /// received, and a process that has ended is found to have ended again.
    async fn happening(&mut self) -> Happening {
        let deadline = self.deadline();
        let idle = self.phase == Phase::Idle;
        let held = self.is_holding();
        let streams_open = self.ended_streams < 2;
        let ending = matches!(
            self.phase,
            Phase::Terminating(_) | Phase::Killed(_) | Phase::Gone(_)
        );
        let control = async {
            match &mut self.turn {
                Some(turn) => turn.control(ending).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            happening = control => happening,
            output = self.outputs.recv(), if streams_open && !held => Happening::Output(output),
            next = self.more.recv(), if idle => Happening::Next(next),
            () = self.process.wait() => Happening::Exited,
            () = sleep_until(deadline) => Happening::Deadline,
        }
    }

    fn is_over(&self) -> bool {
        match self.phase {
            Phase::Gone(until) => {
                self.ended_streams >= 2 && !self.is_holding() || Instant::now() >= until
            }
            _ => false,
        }
    }

    fn is_holding(&self) -> bool {
        self.turn.as_ref().is_some_and(Running::is_holding)
    }

    fn begin(&mut self, assignment: Assignment) {
        let before = self.ledger.lock().ok().and_then(|total| total.clone());
        let prompt = match self.mode {
            Mode::Single => assignment.prompt.clone().into_bytes(),
            Mode::Warm(_) => warm::prompt_line(&assignment.attempt, &assignment.prompt),
        };
        self.process.write(prompt);
        if self.mode == Mode::Single {
            self.process.close_stdin();
        }
        self.turns += 1;
        self.last_sign = Instant::now();
        if self.phase == Phase::Idle {
            self.phase = Phase::Working;
        }
        self.turn = Some(Running::new(assignment, before));
    }

    fn output(&mut self, output: Output) {
        self.last_sign = Instant::now();
        match output {
            Output::End => self.ended_streams += 1,
            Output::Stderr(line) => match &mut self.turn {
                Some(turn) => turn.stderr(line),
                None => tracing::info!(line, "the engine complains between turns"),
            },
            Output::Line(event, shown) => self.line(event, shown),
        }
    }

    fn line(&mut self, event: Option<StreamEvent>, shown: EngineEvent) {
        let Some(turn) = &mut self.turn else {
            // A warm engine that speaks up between turns does something nobody knows of.
            let doubtful = matches!(
                event,
                Some(StreamEvent::Result(_) | StreamEvent::Assistant(_) | StreamEvent::Error(_))
            );
            if doubtful && self.phase == Phase::Idle {
                self.close();
            }
            return;
        };
        turn.first_event
            .get_or_insert(turn.assignment.started.elapsed());
        let answers = match &event {
            Some(StreamEvent::Result(result)) if self.mode != Mode::Single => {
                warm::answers(result, &turn.assignment.attempt)
            }
            _ => warm::Answer::This,
        };
        match &event {
            // The turn is not judged by what the process did besides.
            Some(StreamEvent::Result(result)) if answers == warm::Answer::Another => {
                turn.facts.note_another(result);
            }
            Some(event) => turn.note(event),
            None => {}
        }
        turn.show(shown);
        if let Some(StreamEvent::Result(result)) = event {
            turn.result = Some(turn.assignment.started.elapsed());
            self.result(&result, answers);
        }
    }

    /// A result came: does it end the turn?
    fn result(&mut self, result: &ResultEvent, answers: warm::Answer) {
        if self.mode == Mode::Single {
            if self.phase == Phase::Working {
                self.phase = Phase::Leaving;
            }
            return;
        }
        match answers {
            warm::Answer::This => self.finish_warm(result.is_error.unwrap_or(false)),
            // It does not say what it answers. Nothing is counted here: the process ends, and the
            // turn with it.
            warm::Answer::Unknown => self.close(),
            // Something else that the process did by itself. The turn goes on and is its last.
            warm::Answer::Another => self.more.close(),
        }
    }

    /// Ends the turn and keeps the process, unless there is any doubt about it.
    fn finish_warm(&mut self, is_error: bool) {
        let interrupted = matches!(self.phase, Phase::Interrupting(_));
        let healthy = matches!(self.phase, Phase::Working) && !is_error && !self.more.is_closed();
        if healthy || interrupted {
            self.phase = Phase::Idle;
        }
        self.finish();
        if !healthy {
            self.close();
        }
    }

    /// Reports the end of the turn, if one runs.
    fn finish(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        if let (Some(total), Ok(mut ledger)) = (turn.facts.total(), self.ledger.lock()) {
            *ledger = Some(total);
        }
        let exit = self.process.exit().unwrap_or(Exit::Alive);
        turn.report(exit, self.turns > 1);
    }

    /// Lets the process end by itself.
    fn close(&mut self) {
        self.more.close();
        if let (Phase::Idle, Ok(late)) = (self.phase, self.more.try_recv()) {
            // It was sent before the door closed: this turn is the last.
            self.begin(late);
            return;
        }
        self.process.close_stdin();
        if matches!(self.phase, Phase::Idle | Phase::Working | Phase::Leaving) {
            // Between turns it has nothing to finish.
            let patience = match self.turn {
                Some(_) => self.timers.result_to_exit,
                None => self.timers.interrupt_grace,
            };
            self.phase = Phase::Closing(after(Instant::now(), patience));
        }
    }

    /// Makes the turn and its process end.
    fn stop(&mut self, why: Stopped) {
        if let Some(turn) = &mut self.turn {
            turn.stopped.get_or_insert(why);
        }
        let now = Instant::now();
        match (why, self.phase) {
            (_, Phase::Terminating(_) | Phase::Killed(_) | Phase::Gone(_)) => {}
            (Stopped::Interrupted, Phase::Interrupting(_)) => {}
            (Stopped::Interrupted, _) => {
                match self.mode {
                    Mode::Single => self.process.signal(Signal::INT),
                    Mode::Warm(_) => self.process.write(warm::interrupt_line()),
                }
                self.phase = Phase::Interrupting(after(now, self.timers.interrupt_grace));
            }
            (Stopped::ShutDown | Stopped::Silent | Stopped::Lingered, _) => self.terminate(),
        }
    }

    fn terminate(&mut self) {
        self.process.close_stdin();
        self.process.signal(Signal::TERM);
        let patience = self.timers.term_grace.saturating_add(KILL_MARGIN);
        self.phase = Phase::Terminating(after(Instant::now(), patience));
    }

    fn deadline(&self) -> Instant {
        let deadline = match self.phase {
            Phase::Working => after(self.last_sign, self.timers.silence),
            Phase::Leaving => after(self.last_sign, self.timers.result_to_exit),
            Phase::Idle => match self.mode {
                Mode::Single => self.last_sign,
                Mode::Warm(linger) => after(self.last_sign, linger),
            },
            Phase::Closing(until)
            | Phase::Interrupting(until)
            | Phase::Terminating(until)
            | Phase::Killed(until)
            | Phase::Gone(until) => until,
        };
        let held = self.turn.as_ref().and_then(Running::held_until);
        held.map_or(deadline, |until| deadline.min(until))
    }

    fn deadline_passed(&mut self) {
        let now = Instant::now();
        if let Some(turn) = &mut self.turn
            && turn.held_until().is_some_and(|until| until <= now)
        {
            turn.give_up_held();
            return;
        }
        match self.phase {
            Phase::Working => self.stop(Stopped::Silent),
            Phase::Leaving => self.stop(Stopped::Lingered),
            Phase::Idle => self.close(),
            Phase::Closing(_) => self.stop(Stopped::Lingered),
            Phase::Interrupting(_) => self.terminate(),
            Phase::Terminating(_) => {
                tracing::warn!("the engine's guard does not end; killing it");
                self.process.signal(Signal::KILL);
                self.phase = Phase::Killed(now + KILL_MARGIN);
            }
            Phase::Killed(_) => {
                tracing::error!("the engine's guard survives SIGKILL; giving it up");
                self.phase = Phase::Gone(now);
            }
            Phase::Gone(_) => self.ended_streams = 2,
        }
    }

    fn show_held(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.show_held();
        }
    }
}

/// A time after `start`, or far away when there is no such time.
fn after(start: Instant, duration: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    start + duration.min(FAR)
}
