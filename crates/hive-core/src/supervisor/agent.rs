//! The task that looks after one agent.

use std::{os::fd::OwnedFd, sync::Arc, time::Duration};

use hive_runtime::{Exit, Instance, RuntimeError, State, with_causes};
use hive_store::{
    failpoint,
    sqlite::{AgentRecord, Run, Wanted},
};
use hive_wire::{AgentName, ErrorCode, Timestamp, WireError, host, text};
use serde_json::json;
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::{Instant, sleep_until},
};

use super::{
    Phase, Post, Standing, Supervisor, dirs, extra, flake, notice,
    plan::{self, Action, Ends, Verdict},
    set_run, settings, spec,
};

/// When to look again after something that should not fail did.
const RETRY: Duration = Duration::from_secs(2);
/// How much of the last output a failure quotes.
const QUOTED: usize = 600;
/// How many lines of it.
const QUOTED_LINES: usize = 4;

/// Looks after one agent until it is destroyed or the daemon ends.
pub(super) struct Task {
    supervisor: Arc<Supervisor>,
    name: AgentName,
    post: Arc<Post>,
    /// The generation that the next two are about.
    generation: u32,
    ends: Ends,
    /// Set while it is to be started again after an end that nobody asked for: not before this.
    pause_until: Option<Instant>,
    /// The generation whose run we watched: its end is news.
    watched: Option<Watched>,
}

/// A run that was seen alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watched {
    generation: u32,
    started_at: Timestamp,
}

/// What to wait for before the next look.
enum Until {
    /// Somebody asks.
    Asked,
    /// The agent ends.
    Ended(OwnedFd),
    /// A time.
    Time(Instant),
    /// Nothing.
    Now,
}

impl Task {
    pub(super) fn new(supervisor: Arc<Supervisor>, name: AgentName, post: Arc<Post>) -> Self {
        Self {
            supervisor,
            name,
            post,
            generation: 0,
            ends: Ends::default(),
            pause_until: None,
            watched: None,
        }
    }

    pub(super) async fn run(mut self) {
        let gone = self.post.gone.clone();
        let _says_that_it_ended = self.post.ended.clone().drop_guard();
        while !gone.is_cancelled() {
            let until = match self.step().await {
                Ok(until) => until,
                Err(Problem::Over) => return,
                Err(Problem::Trouble(problem)) => {
                    tracing::error!(agent = %self.name, problem, "trying again soon");
                    self.say(|standing| standing.problem = problem);
                    Until::Time(Instant::now() + RETRY)
                }
            };
            // Cancel-safe: all of them only wait.
            tokio::select! {
                () = gone.cancelled() => return,
                () = self.post.look.notified() => {}
                () = wait(until) => {}
            }
        }
    }

    /// Looks once and does one thing.
    async fn step(&mut self) -> Result<Until, Problem> {
        let agent = self.wanted().await?;
        if agent.run.generation != self.generation {
            // Who asks for a new beginning does not wait for what went wrong before.
            self.generation = agent.run.generation;
            self.ends = Ends::default();
            self.pause_until = None;
        }
        let name = self.name.clone();
        let actual = self
            .supervisor
            .blocking(agent.runtime, move |runtime| runtime.inspect(&name))
            .await?;
        self.notice_end(&agent, actual.as_ref()).await?;
        // What was wanted may have changed by what was noticed.
        let agent = self.wanted().await?;
        match plan::next(&agent.run, actual.as_ref()) {
            Action::Rest => {
                let phase = match agent.run.failure {
                    Some(_) => Phase::Failed,
                    None => Phase::Stopped,
                };
                self.stand(phase, &agent.run, None);
                Ok(Until::Asked)
            }
            Action::Watch => self.watch(&agent, actual).await,
            Action::Stop => self.stop(&agent).await,
            Action::Start => match self.pause_until.filter(|at| *at > Instant::now()) {
                Some(at) => {
                    self.stand(Phase::Starting, &agent.run, None);
                    Ok(Until::Time(at))
                }
                None => self.start(&agent, actual.is_some()).await,
            },
        }
    }

    /// What is wanted of the agent.
    async fn wanted(&self) -> Result<AgentRecord, Problem> {
        let name = self.name.clone();
        let find = self
            .supervisor
            .parts
            .broker
            .run(move |desk| desk.roster.find(name.as_str()).cloned());
        Ok(find.await?)
    }

    async fn watch(
        &mut self,
        agent: &AgentRecord,
        actual: Option<Instance>,
    ) -> Result<Until, Problem> {
        let name = self.name.clone();
        let watched = self
            .supervisor
            .blocking(agent.runtime, move |runtime| runtime.watch(&name))
            .await?;
        let (Some(instance), Some(end)) = (actual, watched) else {
            return Ok(Until::Now);
        };
        self.watched = Some(Watched {
            generation: instance.generation,
            started_at: instance.started_at,
        });
        self.stand(Phase::Running, &agent.run, instance.pid());
        if !instance.unbounded.is_empty() {
            let what = instance.unbounded.join("; ");
            let problem = format!("limits that this host does not enforce: {what}");
            self.say(|standing| standing.problem = problem);
        }
        Ok(Until::Ended(end))
    }

    async fn stop(&mut self, agent: &AgentRecord) -> Result<Until, Problem> {
        self.stand(Phase::Stopping, &agent.run, None);
        // Its end is not news any more.
        self.watched = None;
        let grace = self.supervisor.parts.config.agents.stop_grace();
        let name = self.name.clone();
        failpoint!("supervisor::before_stop");
        self.supervisor
            .blocking(agent.runtime, move |runtime| runtime.stop(&name, grace))
            .await?;
        failpoint!("supervisor::stopped");
        self.report("agent_stopped", json!({})).await?;
        Ok(Until::Now)
    }

    async fn start(&mut self, agent: &AgentRecord, ran_before: bool) -> Result<Until, Problem> {
        self.stand(Phase::Starting, &agent.run, None);
        let spec = match self.spec(agent) {
            Ok(spec) => spec,
            Err(problem) => return self.give_up(agent, &problem).await,
        };
        if ran_before {
            let name = self.name.clone();
            let broker = &self.supervisor.parts.broker;
            broker.run(move |desk| notice::leave(desk, &name)).await?;
        }
        failpoint!("supervisor::before_start");
        let started = self
            .supervisor
            .blocking(agent.runtime, move |runtime| runtime.start(&spec))
            .await;
        failpoint!("supervisor::started");
        match started {
            Ok(instance) => {
                let is_again = self.pause_until.take().is_some();
                self.tell_of_start(&instance, is_again).await?;
                let parts = &self.supervisor.parts;
                parts
                    .revision
                    .note(&parts.configs, &agent.name, agent.runtime);
                self.watched = Some(Watched {
                    generation: instance.generation,
                    started_at: instance.started_at,
                });
                Ok(Until::Now)
            }
            Err(error) if is_final(&error) => self.give_up(agent, &with_causes(&error)).await,
            Err(error) => {
                let problem = with_causes(&error);
                tracing::warn!(agent = %self.name, problem, "cannot start it");
                self.count_end(agent, Duration::ZERO, &problem).await?;
                Ok(Until::Now)
            }
        }
    }

    /// What the agent is started with, or what is missing.
    fn spec(&self, agent: &AgentRecord) -> Result<hive_runtime::AgentSpec, String> {
        let parts = &self.supervisor.parts;
        let engine = parts.binaries.engine(&agent.run.engine, &parts.config)?;
        let Some(harness) = &parts.binaries.harness else {
            return Err(parts.binaries.no_harness());
        };
        let Some(runtime) = parts.runtimes.get(agent.runtime) else {
            return Err(format!(
                "this build has no runtime `{}`",
                agent.runtime.as_str()
            ));
        };
        let grants = parts.gate.grants(&agent.name);
        let applied = parts.configs.get(&agent.name);
        let settings = settings::of(agent, &applied, &parts.config, &parts.paths)?;
        let (dirs, owner) = dirs::prepare(&parts.paths, &agent.name, agent.runtime)
            .map_err(|error| format!("{error:#}"))?;
        if settings.proposals.is_some() {
            dirs::hand_over(&parts.paths.proposed(), owner)
                .map_err(|error| format!("{error:#}"))?;
        }
        extra::write(&dirs.run, &applied).map_err(|error| format!("{error:#}"))?;
        let spec = spec::of(spec::Inputs {
            agent,
            groups: grants.groups(),
            applied: &applied,
            config: &parts.config,
            settings: &settings,
            model: &parts.model,
            engine: &engine.command,
            view: runtime.view(&dirs),
            dirs,
            owner,
            harness,
            binaries: &parts.binaries.dir,
            dashboard_port: parts.dashboard_port,
            var: &|name| std::env::var(name).ok(),
        });
        if agent.runtime == host::Runtime::Nixos {
            flake::write(parts, agent, &spec).map_err(|error| format!("{error:#}"))?;
        }
        Ok(spec)
    }

    /// Takes note when a run that was watched has ended by itself.
    async fn notice_end(
        &mut self,
        agent: &AgentRecord,
        actual: Option<&Instance>,
    ) -> Result<(), Problem> {
        let Some(watched) = self.watched else {
            return Ok(());
        };
        let exit = match actual {
            Some(Instance {
                state: State::Running { .. },
                ..
            }) => return Ok(()),
            Some(Instance {
                state: State::Ended(exit),
                ..
            }) => *exit,
            None => Exit::Unseen,
        };
        self.watched = None;
        let lasted = Timestamp::now().millis() - watched.started_at.millis();
        let lasted = Duration::from_millis(u64::try_from(lasted).unwrap_or(0));
        let output = self.last_output(agent).await;
        tracing::warn!(agent = %self.name, %exit, "it ended by itself");
        let data = json!({"exit": exit.to_string(), "output": output});
        self.report("agent_ended", data).await?;
        let is_meant = agent.run.wanted == Wanted::Running
            && agent.run.failure.is_none()
            && agent.run.generation == watched.generation;
        if is_meant {
            let problem = match output.as_str() {
                "" => exit.to_string(),
                output => format!("{exit}; its last words: {output}"),
            };
            self.count_end(agent, lasted, &problem).await?;
        }
        Ok(())
    }

    /// Counts an end that nobody asked for, and gives up when there were too many.
    async fn count_end(
        &mut self,
        agent: &AgentRecord,
        lasted: Duration,
        problem: &str,
    ) -> Result<(), Problem> {
        let config = &self.supervisor.parts.config.agents;
        let first = Duration::from_millis(config.restart_delay_ms.into());
        match self.ends.note(lasted, config.restarts, first) {
            Verdict::Again(pause) => {
                self.pause_until = Some(Instant::now() + pause);
                self.say(|standing| standing.problem = problem.to_owned());
                Ok(())
            }
            Verdict::GiveUp { ends } => {
                let problem = format!("it ended {ends} times; the last time {problem}");
                self.give_up(agent, &problem).await.map(|_| ())
            }
        }
    }

    /// Says that it was started, and counts it when nobody had asked for it: whoever hears of the
    /// start finds it counted.
    async fn tell_of_start(&self, instance: &Instance, is_again: bool) -> Result<(), Problem> {
        let (name, generation) = (self.name.clone(), instance.generation);
        let data = json!({"pid": instance.pid(), "generation": generation});
        let told = self.supervisor.parts.broker.run(move |desk| {
            desk.report_agent(&name, "agent_started", &data);
            let run = desk.roster.find(name.as_str())?.run.clone();
            // A newer wish has begun a count of its own.
            if !is_again || run.generation != generation {
                return Ok(());
            }
            let run = Run {
                restarts: run.restarts.saturating_add(1),
                restarted_at: Some(Timestamp::now()),
                ..run
            };
            set_run(desk, &name, run).map(|_| ())
        });
        Ok(told.await?)
    }

    /// Leaves the agent to the operator, with the reason; a start makes a new beginning.
    async fn give_up(&mut self, agent: &AgentRecord, problem: &str) -> Result<Until, Problem> {
        tracing::error!(agent = %self.name, problem, "given up");
        self.ends = Ends::default();
        self.pause_until = None;
        let (name, generation) = (self.name.clone(), agent.run.generation);
        let failure = text::shorten(problem, 2_000);
        let change = self.supervisor.parts.broker.run(move |desk| {
            let run = desk.roster.find(name.as_str())?.run.clone();
            if !plan::may_fail(&run, generation) {
                return Ok(());
            }
            desk.report_agent(&name, "agent_failed", &json!({"reason": failure}));
            let failure = Some(failure);
            set_run(desk, &name, Run { failure, ..run }).map(|_| ())
        });
        change.await?;
        Ok(Until::Now)
    }

    async fn last_output(&self, agent: &AgentRecord) -> String {
        let output = self.supervisor.output(agent, QUOTED).await;
        let output = output.unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let lines: Vec<_> = output.trim().lines().collect();
        lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
    }

    async fn report(&self, kind: &'static str, data: serde_json::Value) -> Result<(), Problem> {
        let name = self.name.clone();
        let report = self.supervisor.parts.broker.run(move |desk| {
            desk.report_agent(&name, kind, &data);
            Ok(())
        });
        Ok(report.await?)
    }

    fn stand(&self, phase: Phase, run: &Run, pid: Option<u32>) {
        self.post.standing.send_if_modified(|standing| {
            let next = Standing {
                phase,
                generation: run.generation,
                pid,
                problem: match (phase, &run.failure) {
                    (Phase::Failed, Some(failure)) => failure.clone(),
                    // What went wrong before somebody asked for a new beginning is over.
                    (Phase::Starting, _) if standing.generation == run.generation => {
                        standing.problem.clone()
                    }
                    _ => String::new(),
                },
            };
            let is_news = *standing != next;
            *standing = next;
            is_news
        });
    }

    fn say(&self, change: impl FnOnce(&mut Standing)) {
        self.post.standing.send_modify(change);
    }
}

/// Whether another try would end the same way.
fn is_final(error: &RuntimeError) -> bool {
    match error {
        RuntimeError::Program { .. } | RuntimeError::Mount { .. } | RuntimeError::Missing(_) => {
            true
        }
        RuntimeError::Busy(_) | RuntimeError::Stuck(_) | RuntimeError::Io { .. } => false,
    }
}

/// Why a look could not be finished.
enum Problem {
    /// The agent or the daemon is going: there is nothing more to look after.
    Over,
    /// Something that may pass.
    Trouble(String),
}

impl From<WireError> for Problem {
    fn from(error: WireError) -> Self {
        match error.code {
            ErrorCode::NotFound | ErrorCode::ShuttingDown => Self::Over,
            _ => Self::Trouble(error.to_string()),
        }
    }
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Self {
        Self::Trouble(with_causes(&error))
    }
}

async fn wait(until: Until) {
    match until {
        Until::Now => {}
        Until::Asked => std::future::pending().await,
        Until::Time(at) => sleep_until(at).await,
        Until::Ended(end) => {
            if let Err(error) = readable(end).await {
                tracing::error!(%error, "cannot wait for an agent to end");
                sleep_until(Instant::now() + RETRY).await;
            }
        }
    }
}

async fn readable(end: OwnedFd) -> std::io::Result<()> {
    #[expect(
        deprecated,
        reason = "an owned descriptor stays open; what replaces this is unsafe for others' sake"
    )]
    let end = AsyncFd::with_interest(end, Interest::READABLE)?;
    end.readable().await.map(|_| ())
}
