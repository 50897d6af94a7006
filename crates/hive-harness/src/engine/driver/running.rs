//! The turn that a driver runs: what was seen of it so far, and what is shown of it.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::{
    super::{
        Ended, EngineEvent, Exit, Stopped, Timeline,
        facts::{Facts, Total},
        stream::StreamEvent,
    },
    Assignment, Control, Happening,
};

/// How long, in one turn, the engine is held back in all for a slow reader of the live view.
const HOLD_BACK: Duration = Duration::from_secs(2);
/// How many lines of stderr are kept.
const STDERR_LINES: usize = 40;

/// The turn that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) assignment: Assignment,
    /// What it is judged by.
    pub(super) facts: Facts,
    pub(super) stopped: Option<Stopped>,
    stderr: VecDeque<String>,
    spawned: Duration,
    pub(super) first_event: Option<Duration>,
    pub(super) result: Option<Duration>,
    /// An event that waits for room in the live view, and until when it does.
    held: Option<(EngineEvent, Instant)>,
    patience: Duration,
}

impl Running {
    /// A turn whose prompt has just been put on its way.
    pub(super) fn new(assignment: Assignment, before: Option<Total>) -> Self {
        Self {
            spawned: assignment.started.elapsed(),
            assignment,
            facts: Facts::new(before),
            stopped: None,
            stderr: VecDeque::new(),
            first_event: None,
            result: None,
            held: None,
            patience: HOLD_BACK,
        }
    }

    /// Whether an event waits for room, so that nothing more may be read.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Until when an event waits for room, if one does.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held.as_ref().map(|(_, until)| *until)
    }

    /// Waits for somebody to want something of this turn. Cancel-safe.
    pub(super) async fn control(&mut self, ending: bool) -> Happening {
        let room = async {
            match self.held {
                Some(_) => self.assignment.live.room().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(control) = self.assignment.control.recv() => Happening::Control(control),
            () = self.assignment.abandoned.cancelled(), if !ending => Happening::Control(Control::ShutDown),
            () = room => Happening::Room,
        }
    }

    pub(super) fn note(&mut self, event: &StreamEvent) {
        self.facts.note(event);
        let now = self.facts.progress();
        self.assignment.progress.send_if_modified(|shown| {
            let changed = *shown != now;
            *shown = now;
            changed
        });
    }

    pub(super) fn stderr(&mut self, line: String) {
        if self.stderr.len() == STDERR_LINES {
            self.stderr.pop_front();
        }
        self.stderr.push_back(line.clone());
        self.show(EngineEvent::Stderr(line));
    }

    pub(super) fn show(&mut self, event: EngineEvent) {
        if let Err(event) = self.assignment.live.offer(event) {
            if self.patience.is_zero() {
                self.assignment.live.leave_out();
            } else {
                self.held = Some((event, Instant::now() + self.patience));
            }
        }
    }

    pub(super) fn show_held(&mut self) {
        let Some((event, until)) = self.held.take() else {
            return;
        };
        match self.assignment.live.offer(event) {
            Ok(()) => self.patience = until.saturating_duration_since(Instant::now()),
            Err(event) => self.held = Some((event, until)),
        }
    }

    pub(super) fn give_up_held(&mut self) {
        if self.held.take().is_some() {
            self.patience = Duration::ZERO;
            self.assignment.live.leave_out();
        }
    }

    pub(super) fn report(mut self, exit: Exit, reused: bool) {
        self.give_up_held();
        let Assignment {
            attempt,
            purpose,
            started,
            started_at,
            end,
            ..
        } = self.assignment;
        let ended = Ended {
            attempt,
            purpose,
            exit,
            stopped: self.stopped,
            reused,
            facts: self.facts,
            stderr_tail: self.stderr.into(),
            timeline: Timeline {
                started_at,
                spawned: self.spawned,
                first_event: self.first_event,
                result: self.result,
                ended: started.elapsed(),
            },
        };
        if end.send(ended).is_err() {
            tracing::debug!("a turn ended that nobody waits for");
        }
    }
}
