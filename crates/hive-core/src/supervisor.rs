//! The supervisor: makes what runs agree with what is wanted.
//!
//! What is wanted lies in the registry ([`hive_store::sqlite::Run`]); what runs is what the runtime
//! says. Each agent has a task that compares the two and acts ([`plan`]), takes no input but the
//! word to look again, and may be interrupted anywhere: the next look repairs it. Only this module
//! calls a runtime.
//!
//! A daemon that ends leaves its agents running, and the next one finds them. `up` stops them at
//! its end without changing what is wanted, so that the next `up` has them back.

mod agent;
mod dirs;
mod extra;
mod flake;
mod notice;
mod plan;
mod settings;
mod setup;
mod spec;
mod verbs;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hive_runtime::{Runtime, RuntimeError, Runtimes, with_causes};
use hive_store::sqlite::{AgentRecord, Run};
use hive_wire::{
    AgentName, WireError,
    host::{self, AgentState},
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent_config::Configs,
    broker::{Broker, Desk},
    config::Config,
    model::ModelAccess,
    paths::Paths,
    permissions::Gate,
    updates::Revision,
};

pub(crate) use dirs::{claim, hand_on, open_to};
pub(crate) use setup::{Binaries, KEEPER, keeper_command, machine};
pub(crate) use verbs::Wish;

/// Makes agents run.
pub(crate) struct Supervisor {
    parts: Parts,
    agents: Mutex<BTreeMap<AgentName, Arc<Post>>>,
    /// What `auto` meant when it was last tried.
    best: Mutex<Option<(host::Runtime, String)>>,
}

/// What a supervisor needs.
pub(crate) struct Parts {
    pub(crate) paths: Paths,
    pub(crate) config: Arc<Config>,
    /// What is applied of each agent.
    pub(crate) configs: Arc<Configs>,
    pub(crate) broker: Broker,
    /// What agents may do, which their harnesses are told.
    pub(crate) gate: Arc<Gate>,
    pub(crate) model: ModelAccess,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) binaries: Binaries,
    /// What agents are made with.
    pub(crate) revision: Revision,
    pub(crate) dashboard_port: u16,
    pub(crate) tasks: TaskTracker,
    /// Ends every task and leaves the agents alone.
    pub(crate) stop: CancellationToken,
}

/// The place of one agent: how its task is reached and what it says.
struct Post {
    runtime: host::Runtime,
    look: Notify,
    standing: watch::Sender<Standing>,
    /// Ends the task.
    gone: CancellationToken,
    /// Says that it has ended.
    ended: CancellationToken,
}

/// How an agent's process stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) phase: Phase,
    /// The generation that the phase is about.
    pub(crate) generation: u32,
    pub(crate) pid: Option<u32>,
    /// What went wrong last.
    pub(crate) problem: String,
}

/// Where the process of an agent stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// It is being started, or will be after a pause.
    Starting,
    /// It runs.
    Running,
    /// It is being stopped.
    Stopping,
    /// It does not run, and should not.
    Stopped,
    /// It does not run, and the host has given up on it.
    Failed,
}

impl Phase {
    /// The state that the operator sees, as far as the process alone tells it.
    pub(crate) fn state(self) -> AgentState {
        match self {
            Self::Unknown | Self::Starting | Self::Running => AgentState::Starting,
            Self::Stopping | Self::Stopped => AgentState::Stopped,
            Self::Failed => AgentState::Failed,
        }
    }
}

impl Supervisor {
    /// A supervisor that looks after nobody yet.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            parts,
            agents: Mutex::new(BTreeMap::new()),
            best: Mutex::new(None),
        })
    }

    /// Takes over the agents of an earlier daemon. What runs and is nobody's is stopped by the
    /// rounds.
    pub(crate) fn adopt(self: &Arc<Self>, agents: &[AgentRecord]) {
        let ours = |agent: &&AgentRecord| agent.runtime != host::Runtime::None;
        for agent in agents.iter().filter(ours) {
            self.look_after(agent);
        }
    }

    /// Stops what runs and is nobody's.
    pub(crate) async fn stop_stray(self: &Arc<Self>, kind: host::Runtime, name: &AgentName) {
        tracing::warn!(agent = %name, runtime = kind.as_str(), "stopping what is left of it");
        let grace = self.parts.config.agents.stop_grace();
        self.stop_process(kind, name, grace).await;
    }

    /// Everything that runs, whichever runtime runs it.
    pub(crate) async fn running(self: &Arc<Self>) -> Vec<(host::Runtime, AgentName)> {
        let mut running = Vec::new();
        for runtime in self.parts.runtimes.iter() {
            let kind = runtime.kind();
            match self.blocking(kind, |runtime| runtime.list()).await {
                Ok(found) => running.extend(found.into_iter().map(|one| (kind, one.name))),
                Err(error) => {
                    let error = with_causes(&error);
                    tracing::error!(error, runtime = kind.as_str(), "cannot tell what runs");
                }
            }
        }
        running
    }

    /// Begins to look after an agent.
    pub(crate) fn look_after(self: &Arc<Self>, agent: &AgentRecord) {
        let name = &agent.name;
        let post = Arc::new(Post {
            runtime: agent.runtime,
            look: Notify::new(),
            standing: watch::Sender::default(),
            gone: self.parts.stop.child_token(),
            ended: CancellationToken::new(),
        });
        let former = self.lock().insert(name.clone(), Arc::clone(&post));
        debug_assert!(former.is_none(), "an agent has one post");
        let task = agent::Task::new(Arc::clone(self), name.clone(), post);
        self.parts.tasks.spawn(task.run());
    }

    /// Lets go of an agent that is not of this hive any more.
    pub(crate) fn let_go(&self, name: &AgentName) {
        if let Some(post) = self.lock().remove(name) {
            post.gone.cancel();
        }
    }

    /// Has an agent looked at again.
    pub(crate) fn look(&self, name: &AgentName) {
        if let Some(post) = self.lock().get(name) {
            post.look.notify_one();
        }
    }

    /// Those that are looked after, by name, and what runs them.
    pub(crate) fn crew(&self) -> Vec<(AgentName, host::Runtime)> {
        let agents = self.lock();
        let crew = agents.iter();
        crew.map(|(name, post)| (name.clone(), post.runtime))
            .collect()
    }

    /// How an agent's process stands; `None` for one that runs elsewhere.
    pub(crate) fn standing(&self, name: &AgentName) -> Option<Standing> {
        let agents = self.lock();
        agents.get(name).map(|post| post.standing.borrow().clone())
    }

    /// Waits until an agent stands as `enough` says, or time is up: how it stands then.
    pub(crate) async fn wait_until(
        &self,
        name: &AgentName,
        patience: Duration,
        enough: impl FnMut(&Standing) -> bool,
    ) -> Option<Standing> {
        let mut standing = self.lock().get(name)?.standing.subscribe();
        // Time that is up shows in what is returned.
        timeout(patience, standing.wait_for(enough)).await.ok();
        Some(standing.borrow_and_update().clone())
    }

    /// Stops every agent that runs, all at once, and changes nothing of what is wanted. For the
    /// end of `up`: no agent is looked after any more.
    pub(crate) async fn stop_for_now(self: &Arc<Self>) {
        self.end_all(self.parts.config.agents.stop_grace()).await;
    }

    /// The same without asking them first.
    pub(crate) async fn kill_for_now(self: &Arc<Self>) {
        self.end_all(Duration::ZERO).await;
    }

    async fn end_all(self: &Arc<Self>, grace: Duration) {
        let posts: Vec<_> = std::mem::take(&mut *self.lock()).into_values().collect();
        posts.iter().for_each(|post| post.gone.cancel());
        for post in posts {
            // Whoever is about to start something finishes that first: it is stopped below.
            post.ended.cancelled().await;
        }
        let stops: Vec<_> = self
            .running()
            .await
            .into_iter()
            .map(|(kind, name)| {
                let supervisor = Arc::clone(self);
                let stop = async move { supervisor.stop_process(kind, &name, grace).await };
                self.parts.tasks.spawn(stop)
            })
            .collect();
        for stop in stops {
            if let Err(error) = stop.await {
                tracing::error!(%error, "a stop was cut short");
            }
        }
    }

    /// What an agent's harness wrote, newest last.
    pub(crate) async fn output(
        self: &Arc<Self>,
        agent: &AgentRecord,
        max: usize,
    ) -> Result<Vec<u8>, RuntimeError> {
        let name = agent.name.clone();
        self.blocking(agent.runtime, move |runtime| runtime.output(&name, max))
            .await
    }

    /// What `auto` means here now, and why. What did not work is tried again.
    pub(crate) async fn best_runtime(self: &Arc<Self>) -> (host::Runtime, String) {
        let supervisor = Arc::clone(self);
        let tried = self.parts.tasks.spawn_blocking(move || {
            let parts = &supervisor.parts;
            let best = setup::best(&parts.binaries, &parts.runtimes);
            let mut known = supervisor
                .best
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *known = Some(best.clone());
            best
        });
        tried.await.unwrap_or_else(|error| {
            let why = format!("the runtimes could not be tried: {error}");
            (host::Runtime::None, why)
        })
    }

    /// How every runtime that isolates stands here.
    pub(crate) async fn try_runtimes(self: &Arc<Self>) -> host::RuntimeStates {
        let (best, note) = self.best_runtime().await;
        let runtimes = Arc::clone(&self.parts.runtimes);
        let tried = self
            .parts
            .tasks
            .spawn_blocking(move || setup::try_all(&runtimes));
        host::RuntimeStates {
            best,
            note,
            runtimes: tried.await.unwrap_or_default(),
        }
    }

    /// Finds out whether a runtime works here.
    ///
    /// # Errors
    /// With why not, and what to do about it.
    pub(crate) async fn check_runtime(
        self: &Arc<Self>,
        kind: host::Runtime,
    ) -> Result<(), hive_runtime::Unavailable> {
        let runtimes = Arc::clone(&self.parts.runtimes);
        let tried = self
            .parts
            .tasks
            .spawn_blocking(move || runtimes.check(kind));
        tried.await.unwrap_or_else(|error| {
            Err(hive_runtime::Unavailable {
                why: error.to_string(),
                remedy: "try again".to_owned(),
            })
        })
    }

    /// The hive's own programs.
    pub(crate) fn binaries(&self) -> &Binaries {
        &self.parts.binaries
    }

    /// What a new agent gets on this machine.
    pub(crate) fn defaults(&self) -> host::Defaults {
        let best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        let (runtime, runtime_note) = match best.clone() {
            Some(best) => best,
            None if self.parts.binaries.harness.is_none() => {
                (host::Runtime::None, self.parts.binaries.no_harness())
            }
            None => (host::Runtime::Auto, "not tried yet".to_owned()),
        };
        let (engine, engine_note) = match self.parts.binaries.engine("", &self.parts.config) {
            Ok(choice) => (choice.command, choice.why),
            Err(problem) => (String::new(), problem),
        };
        host::Defaults {
            runtime,
            runtime_note,
            engine,
            engine_note,
            rehearsed: self.parts.model.rehearsed,
        }
    }

    /// The engine that an agent is started with; empty for one that runs elsewhere.
    pub(crate) fn engine_of(&self, agent: &AgentRecord) -> String {
        if agent.runtime == host::Runtime::None {
            return String::new();
        }
        let chosen = self
            .parts
            .binaries
            .engine(&agent.run.engine, &self.parts.config);
        chosen.map(|choice| choice.command).unwrap_or_default()
    }

    /// The model that an agent is started with; empty for one that runs elsewhere.
    pub(crate) fn model_of(&self, agent: &AgentRecord) -> String {
        if agent.runtime == host::Runtime::None {
            return String::new();
        }
        match agent.run.model.as_str() {
            "" => self.parts.config.agents.model.clone(),
            own => own.to_owned(),
        }
    }

    /// What agents are made with.
    pub(crate) fn revision(&self) -> &Revision {
        &self.parts.revision
    }

    /// Whether an agent was made with another revision of the hive.
    pub(crate) fn is_stale(&self, agent: &AgentRecord) -> bool {
        self.parts
            .revision
            .is_stale(&self.parts.configs, &agent.name, agent.runtime)
    }

    /// How engines reach a model.
    pub(crate) fn model(&self) -> &ModelAccess {
        &self.parts.model
    }

    async fn stop_process(
        self: &Arc<Self>,
        kind: host::Runtime,
        name: &AgentName,
        grace: Duration,
    ) {
        let agent = name.clone();
        let stopped = self
            .blocking(kind, move |runtime| runtime.stop(&agent, grace))
            .await;
        if let Err(error) = stopped {
            tracing::error!(agent = %name, error = with_causes(&error), "cannot stop it");
        }
    }

    /// Calls a runtime where blocking is fine.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        kind: host::Runtime,
        call: impl FnOnce(&dyn Runtime) -> Result<T, RuntimeError> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let Some(runtime) = self.parts.runtimes.get(kind).cloned() else {
            return Err(RuntimeError::Missing(kind.as_str()));
        };
        let call = self.parts.tasks.spawn_blocking(move || call(&*runtime));
        call.await
            .unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(RuntimeError::Io {
                    doing: "finish a call of the runtime".to_owned(),
                    source: std::io::Error::other(error),
                }),
            })
    }

    /// The directory that everything of an agent lies in.
    fn agent_dir(&self, name: &AgentName) -> PathBuf {
        self.parts.paths.agent(name)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentName, Arc<Post>>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes how an agent is meant to run, on disk and in the roster.
fn set_run(desk: &mut Desk<'_>, name: &AgentName, run: Run) -> Result<AgentRecord, WireError> {
    let agent = desk.roster.find(name.as_str())?.clone();
    desk.store(|tx| tx.set_run(name, &run))?;
    let agent = AgentRecord { run, ..agent };
    desk.roster.insert(agent.clone());
    Ok(agent)
}
