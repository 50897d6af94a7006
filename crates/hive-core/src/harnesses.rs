//! The harnesses: what each said last, what it is asked, and who has to wait for a limit.
//!
//! All of it is in memory and made of facts that come again: a harness repeats its state after each
//! connect, so a restarted daemon knows soon what it knew before. What an agent *is* (`idle`,
//! `rate_limited`, …) is derived from these facts when somebody asks, and stored nowhere.
//!
//! The lock is held for lookups and small changes only, never while something is awaited.

mod controls;
mod inflow;
mod limits;
mod report;
mod standing;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use hive_store::{
    event_log::EventLog,
    sqlite::{AgentRecord, StatusLine},
};
use hive_wire::{
    AgentName, ControlId, ErrorCode, HarnessEpoch, Timestamp, WireError,
    agent::{EventsPosted, MAX_WAIT_SECONDS},
    control::{Control, ControlAction, ControlRequests},
    grants::Groups,
    host::{ControlOutcome, ControlState},
    report::{PostState, PostedEvent, TurnState},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use crate::{broker::Presence, pauses::Pauses};

use controls::Controls;
use inflow::Inflow;
use limits::Limits;

pub(crate) use report::{status_line as check_status_line, turn_counts as fit_turn_counts};
pub(crate) use standing::{Facts, state_of};

/// How long a post waits for the log; a log that cannot be written loses events and says so.
const LOG_PATIENCE: Duration = Duration::from_secs(10);

/// Every harness that the host knows.
pub(crate) struct Harnesses {
    inner: Mutex<Inner>,
    events: Arc<EventLog>,
    /// Whether agents that the hive runs use the operator's key.
    host_has_key: bool,
    /// Somebody has connected.
    heard: Notify,
}

struct Inner {
    agents: BTreeMap<AgentName, Harness>,
    limits: Limits,
    pauses: Pauses,
    /// Numbers go on after a restart: a harness answers a number that it knows from memory.
    next_request: i64,
}

/// What the host knows of one harness.
#[derive(Default)]
struct Harness {
    /// What it said last, cut to size.
    report: Option<PostState>,
    line: StatusLine,
    /// The connection that it takes control requests on.
    peer: Option<Weak<dyn Presence>>,
    controls: Controls,
    gate: Arc<Gate>,
}

/// Where posted events come in: one post at a time, and one that waits. A third is refused, so that
/// an agent cannot make the host keep many lines of it.
struct Gate {
    seats: tokio::sync::Semaphore,
    inflow: tokio::sync::Mutex<Inflow>,
}

impl Gate {
    fn new(inflow: Inflow) -> Self {
        Self {
            seats: tokio::sync::Semaphore::new(2),
            inflow: tokio::sync::Mutex::new(inflow),
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new(Inflow::default())
    }
}

/// A poll that is under way.
pub(crate) struct Poll {
    ticket: u64,
    changed: watch::Receiver<()>,
    deadline: Instant,
}

impl Harness {
    fn is_connected(&self) -> bool {
        let peer = self.peer.as_ref().and_then(Weak::upgrade);
        peer.is_some_and(|peer| peer.is_still_there())
    }
}

impl Harnesses {
    /// Nobody has connected yet; what is on disk is known.
    pub(crate) fn new(
        events: Arc<EventLog>,
        lines: Vec<(AgentName, StatusLine)>,
        pauses: Pauses,
        host_has_key: bool,
    ) -> Self {
        let mut agents: BTreeMap<AgentName, Harness> = BTreeMap::new();
        for (name, line) in lines {
            agents.entry(name).or_default().line = line;
        }
        for (about, mark) in events.marks() {
            if let Ok(name) = about.parse() {
                agents.entry(name).or_default().gate =
                    Arc::new(Gate::new(Inflow::at(mark.clone())));
            }
        }
        Self {
            inner: Mutex::new(Inner {
                agents,
                limits: Limits::default(),
                pauses,
                next_request: Timestamp::now().millis(),
            }),
            events,
            host_has_key,
            heard: Notify::new(),
        }
    }

    /// What is known of an agent now.
    pub(crate) fn facts(&self, agent: &AgentRecord) -> Facts {
        let credential = self.credential(agent);
        let mut inner = self.lock();
        let Inner {
            agents,
            limits,
            pauses,
            ..
        } = &mut *inner;
        let now = Timestamp::now();
        let limit = limits.of(&credential, now);
        let (resets_at, held_until) = (
            limit.as_ref().map(|limit| limit.until),
            limits.held_until(&credential, &agent.name, now),
        );
        let paused = pauses.of(&agent.name).map(|pause| pause.reason.clone());
        let mut facts = Facts {
            credential: credential.to_string(),
            resets_at,
            held_until,
            paused,
            ..Facts::default()
        };
        if let Some(harness) = agents.get_mut(&agent.name) {
            facts.connected = harness.is_connected();
            facts.report = harness.report.clone();
            facts.line = harness.line.clone();
            facts.pending = harness.controls.pending();
        }
        facts
    }

    /// Whether a harness of this agent is connected.
    pub(crate) fn is_connected(&self, agent: &AgentName) -> bool {
        let inner = self.lock();
        inner.agents.get(agent).is_some_and(Harness::is_connected)
    }

    /// Waits until a harness of this agent is connected.
    pub(crate) async fn connected(&self, agent: &AgentName) {
        loop {
            let heard = self.heard.notified();
            tokio::pin!(heard);
            // Before the look, so that nothing is missed in between.
            heard.as_mut().enable();
            if self.is_connected(agent) {
                return;
            }
            heard.await;
        }
    }

    /// Waits until no turn of this agent runs; a harness that is not there runs none.
    pub(crate) async fn between_turns(&self, agent: &AgentName) {
        loop {
            let heard = self.heard.notified();
            tokio::pin!(heard);
            heard.as_mut().enable();
            let is_busy = {
                let inner = self.lock();
                inner.agents.get(agent).is_some_and(|harness| {
                    let state = harness.report.as_ref().map(|report| report.turn_state);
                    harness.is_connected() && state.is_some_and(|state| state != TurnState::Idle)
                })
            };
            if !is_busy {
                return;
            }
            heard.await;
        }
    }

    /// What an agent says of itself.
    pub(crate) fn line(&self, agent: &AgentName) -> StatusLine {
        let inner = self.lock();
        let harness = inner.agents.get(agent);
        harness
            .map(|harness| harness.line.clone())
            .unwrap_or_default()
    }

    /// Notes what an agent says of itself, once it is on disk.
    pub(crate) fn set_line(&self, agent: &AgentName, line: StatusLine) {
        self.lock().agents.entry(agent.clone()).or_default().line = line;
    }

    /// Takes a report of an agent's state. A limit that it tells of holds the others on its
    /// credential; `everybody` are the agents of the hive.
    pub(crate) fn post_state(
        &self,
        agent: &AgentName,
        report: PostState,
        everybody: &[AgentRecord],
    ) {
        let report = report::state(report, Timestamp::now());
        let mut inner = self.lock();
        let harness = inner.agents.entry(agent.clone()).or_default();
        let is_news = crate::credentials::is_news(harness.report.as_ref(), &report);
        harness.report = Some(report.clone());
        if is_news {
            self.hold_others(&mut inner, agent, report.resets_at, everybody);
        }
        drop(inner);
        self.heard.notify_waiters();
    }

    /// Takes events that a harness posts: each once, in order, holes marked. Returns when they can
    /// be read.
    ///
    /// # Errors
    /// `bad_request` for numbers that no harness reaches; `limit_reached` when two posts of this
    /// agent are under way.
    pub(crate) async fn post_events(
        &self,
        agent: &AgentName,
        epoch: &HarnessEpoch,
        events: Vec<PostedEvent>,
    ) -> Result<EventsPosted, WireError> {
        let gate = {
            let mut inner = self.lock();
            Arc::clone(&inner.agents.entry(agent.clone()).or_default().gate)
        };
        let _seat = gate.seats.try_acquire().map_err(|_| {
            WireError::new(ErrorCode::LimitReached, "two posts of events are under way")
                .hint("post again when the first one is answered")
        })?;
        let mut inflow = gate.inflow.lock().await;
        let accepted = inflow.accept(agent, epoch, events, Timestamp::now())?;
        let next_seq = inflow.next(epoch);
        if !accepted.is_empty() {
            let position = self.events.publish_stream(accepted);
            if timeout(LOG_PATIENCE, self.events.settled(position))
                .await
                .is_err()
            {
                tracing::warn!(%agent, "the event log is slow or cannot be written");
            }
        }
        Ok(EventsPosted { next_seq })
    }

    /// Begins a poll of a harness, which ends an older one, and takes what came of earlier
    /// requests. The harness counts as connected as long as this peer is there.
    pub(crate) fn begin_poll(
        &self,
        agent: &AgentName,
        command: Control,
        peer: &Arc<dyn Presence>,
    ) -> Poll {
        let wait = Duration::from_secs(command.wait_seconds.min(MAX_WAIT_SECONDS).into());
        let mut inner = self.lock();
        if command.hello {
            inner.tell_pause(agent, false);
        }
        let harness = inner.agents.entry(agent.clone()).or_default();
        harness.peer = Some(Arc::downgrade(peer));
        let (ticket, changed) = harness.controls.enter(command.hello, command.done);
        drop(inner);
        self.heard.notify_waiters();
        Poll {
            ticket,
            changed,
            deadline: Instant::now() + wait,
        }
    }

    /// Waits for something to ask of the harness, until the poll's time is up.
    ///
    /// # Errors
    /// `superseded` when a newer poll took its place, or its connection is gone.
    pub(crate) async fn finish_poll(
        &self,
        agent: &AgentName,
        poll: Poll,
    ) -> Result<ControlRequests, WireError> {
        let Poll {
            ticket,
            mut changed,
            deadline,
        } = poll;
        loop {
            changed.borrow_and_update();
            let requests = {
                let mut inner = self.lock();
                let harness = inner.agents.get_mut(agent);
                harness.and_then(|harness| harness.controls.collect(ticket, Timestamp::now()))
            };
            let requests = requests.ok_or_else(superseded)?;
            if !requests.is_empty() || Instant::now() >= deadline {
                return Ok(ControlRequests { requests });
            }
            // Cancel-safe: both only wait.
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => {}
                alive = changed.changed() => alive.map_err(|_| superseded())?,
            }
        }
    }

    /// Ends the poll of a connection that is gone.
    pub(crate) fn hung_up(&self, agent: &AgentName, peer: &Arc<dyn Presence>) {
        let mut inner = self.lock();
        let Some(harness) = inner.agents.get_mut(agent) else {
            return;
        };
        let known = harness.peer.as_ref().and_then(Weak::upgrade);
        if known.is_some_and(|known| Arc::ptr_eq(&known, peer)) {
            harness.peer = None;
            harness.controls.end_poll();
        }
    }

    /// Asks a harness to do something, and waits for its answer that long.
    ///
    /// # Errors
    /// `conflict` when no harness is connected, `limit_reached` when too much was asked already.
    pub(crate) async fn ask(
        &self,
        agent: &AgentName,
        action: ControlAction,
        wait: Duration,
    ) -> Result<ControlOutcome, WireError> {
        let (request_id, answer) = {
            let mut inner = self.lock();
            inner.next_request += 1;
            let id = ControlId(inner.next_request);
            let harness = inner.agents.get_mut(agent);
            let Some(harness) = harness.filter(|harness| harness.is_connected()) else {
                return Err(not_connected(agent));
            };
            (id, harness.controls.ask(id, action)?)
        };
        let queued = ControlOutcome {
            request_id,
            state: ControlState::Queued,
            carried_out: None,
            note: None,
        };
        // Nobody answers what was dropped for its age: to whoever waits it is still under way.
        Ok(match timeout(wait, answer).await {
            Ok(Ok(done)) => ControlOutcome {
                state: ControlState::Done,
                carried_out: Some(done.ok),
                note: done.note,
                ..queued
            },
            Ok(Err(_)) | Err(_) => queued,
        })
    }

    /// Tells a harness which tools its engine has from the next turn on (C14).
    pub(crate) fn set_tool_groups(&self, agent: &AgentName, groups: &Groups) {
        let mut inner = self.lock();
        inner.next_request += 1;
        let request_id = ControlId(inner.next_request);
        let groups = groups.iter().map(|group| group.to_string()).collect();
        let harness = inner.agents.entry(agent.clone()).or_default();
        let action = ControlAction::ToolGroups { groups };
        harness.controls.regroup(request_id, action);
    }

    /// Takes the pauses in force now, and tells every harness that they concern; `now` for those
    /// whose turns are to stop.
    pub(crate) fn set_pauses(&self, pauses: Pauses, now: &dyn Fn(&AgentName) -> bool) {
        let mut inner = self.lock();
        inner.pauses = pauses;
        let names: Vec<AgentName> = inner.agents.keys().cloned().collect();
        for name in names {
            inner.tell_pause(&name, now(&name));
        }
    }

    /// Forgets an agent that was destroyed; what it said of itself stays for a later one.
    pub(crate) fn forget(&self, agent: &AgentName) {
        let mut inner = self.lock();
        if let Some(harness) = inner.agents.get_mut(agent) {
            harness.report = None;
            harness.peer = None;
            harness.controls = Controls::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock panics half-way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Says to a harness, now or when it connects, whether it is paused.
    fn tell_pause(&mut self, agent: &AgentName, now: bool) {
        let action = match self.pauses.of(agent) {
            Some(pause) => ControlAction::Pause {
                reason: pause.reason.clone(),
                now,
            },
            None => ControlAction::Resume,
        };
        self.next_request += 1;
        let id = ControlId(self.next_request);
        let harness = self.agents.entry(agent.clone()).or_default();
        harness.controls.pause(id, action);
    }
}

fn superseded() -> WireError {
    WireError::new(
        ErrorCode::Superseded,
        "a newer poll took the place of this one",
    )
    .hint("one harness of an agent polls at a time")
}

fn not_connected(agent: &AgentName) -> WireError {
    WireError::new(
        ErrorCode::Conflict,
        format!("`{agent}` has no harness connected"),
    )
    .hint(format!(
        "start it with `hive-c0re start {agent}`, or wait until it has connected"
    ))
}
