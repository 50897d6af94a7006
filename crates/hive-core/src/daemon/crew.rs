//! What a daemon brings along to run agents with: the supervisor, the way to a model, and the
//! first agent of a new hive.

use std::{fs, path::Path, sync::Arc};

use hive_runtime::ProcessRuntime;
use hive_store::sqlite::{AgentRecord, Wanted};
use hive_wire::{
    AgentName, WireError,
    host::{Runtime, Spawn},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Mode;
use crate::{
    agent_config::{self, AGENT_TOML, Configs},
    approvals,
    broker::Broker,
    config::Config,
    host_commands::{Host, spawn},
    model::{ModelAccess, Rehearsal},
    paths::Paths,
    permissions::Gate,
    repos::Tree,
    supervisor::{self, Binaries, Supervisor, keeper_command},
};

/// The file that Claude Code keeps a login in.
const LOGIN: &str = ".credentials.json";

/// The hive's programs and its way to a model.
pub(super) struct Means {
    pub(super) binaries: Binaries,
    pub(super) model: ModelAccess,
    /// The rehearsed model, for as long as this is held.
    pub(super) rehearsal: Option<Rehearsal>,
}

impl Means {
    /// Finds the hive's programs and a model; `up` rehearses one where there is none.
    ///
    /// # Errors
    /// When the system does not say where this program lies.
    pub(super) async fn find(
        mode: Mode,
        paths: &Paths,
        config: &Config,
        agents: &[AgentRecord],
    ) -> anyhow::Result<Self> {
        let binaries = Binaries::find()?;
        let model = ModelAccess::new(&config.engine.env, |name| std::env::var(name).ok());
        let mut means = Self {
            binaries,
            model,
            rehearsal: None,
        };
        let is_needed = mode == Mode::Up && !means.model.is_given() && !any_login(paths, agents);
        if is_needed {
            means.rehearse(paths).await;
        }
        Ok(means)
    }

    /// Whether agents share one way to a model.
    pub(super) fn is_shared(&self) -> bool {
        self.model.is_given()
    }

    async fn rehearse(&mut self, paths: &Paths) {
        let Some(program) = &self.binaries.rehearsal else {
            tracing::warn!(
                dir = %self.binaries.dir.display(),
                "there is no key and no `hive-rehearsal` to do without: agents cannot work yet"
            );
            return;
        };
        match Rehearsal::start(program, &keeper_command(), &paths.rehearsal()).await {
            Ok(rehearsal) => {
                self.model.rehearse(&rehearsal.url);
                self.rehearsal = Some(rehearsal);
            }
            Err(error) => {
                tracing::error!(error = %format!("{error:#}"), "cannot rehearse a model");
            }
        }
    }
}

/// Whether an agent has logged in by itself.
fn any_login(paths: &Paths, agents: &[AgentRecord]) -> bool {
    let has_login = |dir: &Path| fs::symlink_metadata(dir.join(LOGIN)).is_ok();
    let mut dirs = agents
        .iter()
        .map(|agent| paths.agent_dirs(&agent.name).claude);
    dirs.any(|dir| has_login(&dir))
}

/// What a supervisor shares with the rest of the daemon.
pub(super) struct Around<'a> {
    pub(super) paths: &'a Paths,
    pub(super) config: &'a Arc<Config>,
    pub(super) configs: &'a Arc<Configs>,
    pub(super) broker: &'a Broker,
    pub(super) gate: &'a Arc<Gate>,
    pub(super) dashboard_port: u16,
    pub(super) tasks: &'a TaskTracker,
    pub(super) stop: &'a CancellationToken,
}

/// A supervisor that looks after nobody yet.
pub(super) fn supervisor(means: &Means, around: &Around<'_>) -> Arc<Supervisor> {
    Supervisor::new(supervisor::Parts {
        paths: around.paths.clone(),
        config: Arc::clone(around.config),
        configs: Arc::clone(around.configs),
        broker: around.broker.clone(),
        gate: Arc::clone(around.gate),
        model: means.model.clone(),
        runtime: Arc::new(ProcessRuntime::new(around.paths.agents(), keeper_command())),
        binaries: means.binaries.clone(),
        dashboard_port: around.dashboard_port,
        tasks: around.tasks.clone(),
        stop: around.stop.clone(),
    })
}

/// Has everybody started who should run, and begins a new hive with its root agent.
pub(super) async fn muster(host: &Arc<Host>, means: &Means, agents: &[AgentRecord]) {
    if means.rehearsal.as_ref().is_some_and(|one| one.has_moved) {
        // Those who still run know only where the model was.
        for agent in agents
            .iter()
            .filter(|one| one.run.wanted == Wanted::Running)
        {
            if let Err(error) = host.supervisor.renew(&agent.name).await {
                tracing::error!(agent = %agent.name, %error, "it does not find the model");
            }
        }
    }
    // Those who outlived the last daemon may not have heard of its last word.
    for agent in agents {
        let grants = host.gate.grants(&agent.name);
        if grants.changed_at().is_some() {
            host.harnesses.set_tool_groups(&agent.name, grants.groups());
        }
        if let Err(error) = ensure_repos(host, agent).await {
            tracing::error!(agent = %agent.name, %error, "it has no repositories of configuration");
        }
    }
    host.supervisor.adopt(agents).await;
    if means.binaries.harness.is_some() {
        first_agent(host).await;
    }
}

/// Gives an agent of an earlier version its repositories, with what it was made with.
async fn ensure_repos(host: &Host, agent: &AgentRecord) -> Result<(), WireError> {
    if agent.runtime == Runtime::None {
        return Ok(());
    }
    let run = agent.run.clone();
    let name = agent.name.clone();
    host.approvals
        .on_disk(move |repos| {
            let ensure = || -> anyhow::Result<()> {
                let tree = match repos.applied(&name)? {
                    Some(applied) => applied.tree,
                    None => {
                        let wishes = [("engine", run.engine.as_str()), ("model", &run.model)];
                        let wishes: Vec<_> = wishes
                            .into_iter()
                            .filter(|(_, value)| !value.is_empty())
                            .collect();
                        let text = agent_config::first(name.as_str(), &wishes);
                        let tree = Tree::of(AGENT_TOML, text);
                        repos.apply(&name, &tree, "as it was made")?;
                        tree
                    }
                };
                repos.first_proposal(&name, &tree)
            };
            ensure().map_err(|error| approvals::storage(&error))
        })
        .await
}

/// Makes the root agent, unless this hive has, or had, one (C8).
async fn first_agent(host: &Arc<Host>) {
    let name = match host.config.hive.root_agent.parse::<AgentName>() {
        Ok(name) => name,
        Err(_) if host.config.hive.root_agent.is_empty() => return,
        Err(error) => {
            tracing::error!(%error, "`hive.root_agent` is no name for an agent");
            return;
        }
    };
    let wanted = name.clone();
    let known = host
        .broker
        .run(move |desk| desk.store(|tx| tx.former_port(&wanted)));
    match known.await {
        Ok(None) => {}
        Ok(Some(_)) => return,
        Err(error) => {
            tracing::error!(%error, "cannot tell whether there is a root agent");
            return;
        }
    }
    let command = Spawn {
        runtime: Runtime::Auto,
        ..Spawn::elsewhere(name)
    };
    if let Err(error) = spawn::run(Arc::clone(host), command).await {
        tracing::error!(%error, "cannot create the root agent");
    }
}
