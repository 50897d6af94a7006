//! The broker's thread: hear the agents' connections, take what waits, run it as one group, commit,
//! answer.

use std::{panic::resume_unwind, sync::Arc, thread::JoinHandle, time::Instant};

use anyhow::Context;
use hive_store::{Store, StoreError, event_log::EventLog, sqlite::Retention};
use hive_wire::{ErrorCode, Timestamp, WireError, alarm::Alarm};
use tokio::{runtime::Builder, sync::oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    Broker, Found, Job, Queue,
    agenda::{self, Agenda},
    askers::Askers,
    chores::Chores,
    desk::{Desk, Spoken},
    lobby::Lobby,
    stopping,
};
use crate::{config::Config, metrics::Metrics, pauses::Pauses, roster::Roster, server::together};

/// The most jobs in one group: beyond, an answer would wait for work it has nothing to do with.
const GROUP: usize = 1_024;

/// What the thread is made of.
pub struct Parts {
    /// The writing half of the store.
    pub store: Store,
    /// Who is in the hive.
    pub roster: Roster,
    /// Who begins no turn.
    pub pauses: Pauses,
    /// How the hive is set up.
    pub config: Arc<Config>,
    /// Where events go.
    pub events: Arc<EventLog>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// From this many answers on they are encoded first and then written one right after the other.
const TOGETHER_FROM: usize = 4;

/// How many connections are heard before the next group begins: all that are ready, within reason.
const HEARD_PER_GROUP: u32 = 512;

/// The running thread.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<()>,
    outcome: oneshot::Receiver<Result<(), StoreError>>,
    release: CancellationToken,
}

impl Writer {
    /// Starts the thread. `on_end` is called when the broker has ended, for whatever reason.
    ///
    /// # Errors
    /// When the agenda cannot be read or no thread can be made.
    pub fn start(
        mut parts: Parts,
        on_end: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<(Broker, Self)> {
        let queue = Arc::new(Queue::default());
        let agenda = parts
            .store
            .one(Timestamp::now(), |tx| Agenda::look_up(tx))?
            .context("cannot read the agenda")?;
        let failing = Arc::clone(&queue);
        parts
            .store
            .settle_in_background(move || failing.push(Box::new(LookJob)))?;
        let retention = Retention {
            messages: parts.config.limits.retention(),
        };
        let work = Work {
            parts,
            queue: Arc::clone(&queue),
            lobby: Lobby::default(),
            askers: Askers::default(),
            agenda,
            chores: Chores::new(retention, Instant::now()),
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(HEARD_PER_GROUP)
            .build()
            .context("cannot set up the broker's thread")?;
        let broker = Broker {
            queue,
            runtime: runtime.handle().clone(),
        };
        let release = CancellationToken::new();
        let released = release.clone();
        let (outcome_sender, outcome) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("broker".to_owned())
            .spawn(move || {
                let leaving = Leaving {
                    queue: Arc::clone(&work.queue),
                    on_end: Some(on_end),
                };
                // As a task among those of the connections: they wake it without a system call, which
                // waking the runtime's own future takes.
                let work = runtime.spawn(work.run());
                let result = runtime.block_on(work);
                let result = result.unwrap_or_else(|error| resume_unwind(error.into_panic()));
                drop(leaving);
                // Nobody waits for it when the start itself failed.
                drop(outcome_sender.send(result));
                // The connections still have answers to write.
                runtime.block_on(released.cancelled());
            })
            .context("cannot start the broker's thread")?;
        let writer = Self {
            thread,
            outcome,
            release,
        };
        Ok((broker, writer))
    }

    /// Waits for the broker to end: how the store was closed, or why it failed. Connections go on
    /// until [`Self::release`].
    ///
    /// # Errors
    /// What ended the store.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        let result = (&mut self.outcome).await.context("the broker panicked")?;
        result.map_err(|error| {
            let remedy = error.remedy();
            anyhow::Error::new(error).context(format!("the store ended; {remedy}"))
        })
    }

    /// Lets the thread go, with whatever connections are left on it. Blocks until it is gone.
    pub fn release(self) {
        self.release.cancel();
        if self.thread.join().is_err() {
            tracing::error!("the broker's thread panicked");
        }
    }
}

/// Tells everybody that the thread is gone, also when it panicked: work that nobody will do must
/// not be taken.
struct Leaving<OnEnd: FnOnce()> {
    queue: Arc<Queue>,
    on_end: Option<OnEnd>,
}

impl<OnEnd: FnOnce()> Drop for Leaving<OnEnd> {
    fn drop(&mut self) {
        self.queue.stop();
        if let Some(on_end) = self.on_end.take() {
            on_end();
        }
    }
}

/// What is known by heart and changes with a group.
struct InMind {
    roster: Roster,
    pauses: Pauses,
    agenda: Agenda,
}

struct Work {
    parts: Parts,
    queue: Arc<Queue>,
    lobby: Lobby,
    askers: Askers,
    agenda: Agenda,
    chores: Chores,
}

/// Has a group committed, which says how the store is.
struct LookJob;

impl Job for LookJob {
    fn run(self: Box<Self>, _desk: &mut Desk<'_>) {}

    fn refuse(self: Box<Self>, _error: WireError) {}
}

impl Work {
    async fn run(mut self) -> Result<(), StoreError> {
        let mut jobs = Vec::new();
        let mut alarm = Alarm::default();
        let result = loop {
            let wake_at = self.wake_at();
            let found = self.queue.take(&mut jobs, wake_at, &mut alarm);
            if let Found::Stop = found.await {
                break Ok(());
            }
            if let Err(error) = self.work_off(&mut jobs) {
                break Err(error);
            }
            if self.chores.is_due(Instant::now())
                && let Err(error) = self.do_chore()
                && !error.is_passing()
            {
                break Err(error);
            }
        };
        self.end(result)
    }

    /// Commits the jobs in groups; at least one, because somebody's time may be up.
    fn work_off(&mut self, jobs: &mut Vec<Box<dyn Job>>) -> Result<(), StoreError> {
        loop {
            if let Err(error) = self.commit_group(jobs) {
                jobs.drain(..).for_each(|job| job.refuse(failure(&error)));
                return Err(error);
            }
            if jobs.is_empty() {
                return Ok(());
            }
        }
    }

    /// Runs jobs, what is due, and whose time is up, as one group; then answers.
    fn commit_group(&mut self, jobs: &mut Vec<Box<dyn Job>>) -> Result<(), StoreError> {
        let began = Instant::now();
        let mark = self.lobby.mark();
        let before = self.in_mind();
        let (committed, spoken, count) = self.run_group(jobs, began);
        hive_store::failpoint!("broker::before_reply");
        let mut answers = spoken.deliveries;
        answers.extend(spoken.answers);
        if let Err(error) = committed {
            let told = failure(&error);
            answers.into_iter().for_each(|say| say(Some(&told)));
            // Who parked in this group waits within a turn that was undone with it.
            while let Some(waiter) = self.lobby.pop_since(mark) {
                (waiter.done)(Err(told.clone()));
            }
            for asker in self.askers.undo() {
                (asker.done)(Err(told.clone()));
            }
            tracing::error!(%error, "a group of {count} was not kept");
            if !error.is_passing() {
                return Err(error);
            }
            self.go_back_to(before);
            return Ok(());
        }
        self.askers.keep();
        if answers.len() < TOGETHER_FROM {
            answers.into_iter().for_each(|say| say(None));
        } else {
            together(|| answers.into_iter().for_each(|say| say(None)));
        }
        self.parts.store.acknowledged();
        for event in spoken.events {
            self.parts.events.publish(event);
        }
        if count > 0 {
            self.chores.worked(spoken.sent, Instant::now());
            self.parts
                .metrics
                .group(count, spoken.sent, began.elapsed(), self.lobby.len());
        }
        Ok(())
    }

    /// Runs one group up to its commit: how that went, what to say now, and how many jobs it had.
    fn run_group(
        &mut self,
        jobs: &mut Vec<Box<dyn Job>>,
        began: Instant,
    ) -> (Result<(), StoreError>, Spoken, usize) {
        let now = Timestamp::now();
        let mut desk = Desk {
            group: self.parts.store.begin(now),
            roster: &mut self.parts.roster,
            pauses: &mut self.parts.pauses,
            config: &self.parts.config,
            lobby: &mut self.lobby,
            askers: &mut self.askers,
            now,
            spoken: Spoken::default(),
        };
        // Only what waited already. Gathering more would put everybody into one group, and then
        // all of them wait for its sync while nobody is left to prepare the next one.
        let count = jobs.len().min(GROUP);
        for job in jobs.drain(..count) {
            job.run(&mut desk);
        }
        while let Some(waiter) = desk.lobby.pop_due(began) {
            desk.time_is_up(waiter);
        }
        let fired = !self.agenda.is_due(now, began) || agenda::fire(&mut desk);
        if desk.spoken.agenda_changed {
            match desk.group.run(|tx| Agenda::look_up(tx)) {
                Ok(next) => self.agenda = next,
                Err(error) => tracing::error!(%error, "cannot look up what is due next"),
            }
        }
        if !fired {
            self.agenda.pause(began);
        }
        let Desk { group, spoken, .. } = desk;
        (group.make_durable(), spoken, count)
    }

    fn in_mind(&self) -> InMind {
        InMind {
            roster: self.parts.roster.clone(),
            pauses: self.parts.pauses.clone(),
            agenda: self.agenda.clone(),
        }
    }

    /// Forgets what a group that was undone changed in mind. Nothing is read: on a full disk the
    /// database may not even be able to catch up with what is durable.
    fn go_back_to(&mut self, before: InMind) {
        self.parts.roster = before.roster;
        self.parts.pauses = before.pauses;
        self.agenda = before.agenda;
        // What is due stays due, and would be tried again at once, over and over.
        self.agenda.pause(Instant::now());
    }

    fn wake_at(&self) -> Option<Instant> {
        let times = [
            self.lobby.next_deadline(),
            self.agenda.wake_at(Timestamp::now(), Instant::now()),
            Some(self.chores.wake_at()),
        ];
        times.into_iter().flatten().min()
    }

    fn do_chore(&mut self) -> Result<(), StoreError> {
        let before = self.chores.clone();
        let chores = &mut self.chores;
        let outcome = self.parts.store.one(Timestamp::now(), |tx| chores.step(tx));
        if outcome.is_err() {
            // Nothing of it was kept.
            self.chores = before;
        }
        if !matches!(outcome, Ok(Ok(()))) {
            self.chores.postpone(Instant::now());
        }
        if let Err(refusal) = outcome? {
            tracing::warn!(%refusal, "a chore failed");
        }
        Ok(())
    }

    /// Tells everybody who waits, and closes the store.
    fn end(mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        let error = result.as_ref().err().map_or_else(stopping, failure);
        for waiter in self.lobby.clear() {
            (waiter.done)(Err(error.clone()));
        }
        for asker in self.askers.clear() {
            (asker.done)(Err(error.clone()));
        }
        self.queue.stop();
        let mut late = Vec::new();
        while let Some(Found::Jobs) = self.queue.take_now(&mut late) {
            late.drain(..).for_each(|job| job.refuse(error.clone()));
        }
        match result {
            Ok(()) => self.parts.store.close(),
            // Closing would write; a store that failed is left as it is.
            Err(error) => Err(error),
        }
    }
}

/// A failed commit, as the wire says it.
fn failure(error: &StoreError) -> WireError {
    let (code, what) = match error {
        StoreError::DiskFull => (
            ErrorCode::DiskFull,
            format!("{error}; nothing of this was kept"),
        ),
        _ => (ErrorCode::Storage, error.to_string()),
    };
    WireError::new(code, what).hint(error.remedy())
}
