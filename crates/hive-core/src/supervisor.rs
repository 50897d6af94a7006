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
mod notice;
mod plan;
mod setup;
mod spec;
mod verbs;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hive_runtime::Runtime;
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
};

pub(crate) use setup::{Binaries, KEEPER, keeper_command};
pub(crate) use verbs::Wish;

/// Makes agents run.
pub(crate) struct Supervisor {
    parts: Parts,
    agents: Mutex<BTreeMap<AgentName, Arc<Post>>>,
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
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) binaries: Binaries,
    pub(crate) dashboard_port: u16,
    pub(crate) tasks: TaskTracker,
    /// Ends every task and leaves the agents alone.
    pub(crate) stop: CancellationToken,
}

/// The place of one agent: how its task is reached and what it says.
struct Post {
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
        })
    }

    /// Takes over the agents of an earlier daemon, and stops what runs and is nobody's.
    pub(crate) async fn adopt(self: &Arc<Self>, agents: &[AgentRecord]) {
        let supervised = |name: &AgentName| {
            let mut agents = agents.iter();
            agents.any(|agent| agent.name == *name && agent.runtime != host::Runtime::None)
        };
        match self.blocking(|runtime| runtime.list()).await {
            Ok(running) => {
                for instance in running.iter().filter(|one| !supervised(&one.name)) {
                    tracing::warn!(agent = %instance.name, "stopping what is left of it");
                    let grace = self.parts.config.agents.stop_grace();
                    self.stop_process(&instance.name, grace).await;
                }
            }
            Err(error) => tracing::error!(%error, "cannot tell which agents run"),
        }
        for agent in agents.iter().filter(|agent| supervised(&agent.name)) {
            self.look_after(&agent.name);
        }
    }

    /// Begins to look after an agent.
    pub(crate) fn look_after(self: &Arc<Self>, name: &AgentName) {
        let post = Arc::new(Post {
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

    /// Those that are looked after, by name.
    pub(crate) fn names(&self) -> Vec<AgentName> {
        self.lock().keys().cloned().collect()
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
        let running = match self.blocking(|runtime| runtime.list()).await {
            Ok(running) => running,
            Err(error) => {
                tracing::error!(error = %full(&error), "cannot tell which agents run");
                return;
            }
        };
        let stops: Vec<_> = running
            .into_iter()
            .map(|instance| {
                let supervisor = Arc::clone(self);
                let stop = async move { supervisor.stop_process(&instance.name, grace).await };
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
        name: &AgentName,
        max: usize,
    ) -> Result<Vec<u8>, hive_runtime::RuntimeError> {
        let name = name.clone();
        self.blocking(move |runtime| runtime.output(&name, max))
            .await
    }

    /// The hive's own programs.
    pub(crate) fn binaries(&self) -> &Binaries {
        &self.parts.binaries
    }

    /// What a new agent gets on this machine.
    pub(crate) fn defaults(&self) -> host::Defaults {
        let (runtime, runtime_note) = self.parts.binaries.runtime();
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

    /// How engines reach a model.
    pub(crate) fn model(&self) -> &ModelAccess {
        &self.parts.model
    }

    async fn stop_process(self: &Arc<Self>, name: &AgentName, grace: Duration) {
        let agent = name.clone();
        let stopped = self
            .blocking(move |runtime| runtime.stop(&agent, grace))
            .await;
        if let Err(error) = stopped {
            tracing::error!(agent = %name, error = %full(&error), "cannot stop it");
        }
    }

    /// Calls the runtime where blocking is fine.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&dyn Runtime) -> Result<T, hive_runtime::RuntimeError> + Send + 'static,
    ) -> Result<T, hive_runtime::RuntimeError> {
        let runtime = Arc::clone(&self.parts.runtime);
        let call = self.parts.tasks.spawn_blocking(move || call(&*runtime));
        call.await
            .unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(hive_runtime::RuntimeError::Io {
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

/// An error with its causes, on one line.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
