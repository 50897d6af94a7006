//! What a daemon brings along to run agents with: the supervisor, the way to a model, and the
//! first agent of a new hive.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use hive_runtime::Runtimes;
use hive_store::sqlite::{AgentRecord, Wanted};
use hive_wire::{
    AgentName, Timestamp, WireError,
    host::{Runtime, Spawn},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Mode, rounds};
use crate::{
    agent_config::{self, AGENT_TOML, Configs},
    approvals,
    broker::Broker,
    budgets,
    config::Config,
    egress::Outside,
    gateway::{self, Books, Gateway, Upstreams},
    host_commands::{Host, spawn},
    model::{ModelAccess, Rehearsal},
    paths::Paths,
    permissions::Gate,
    repos::Tree,
    supervisor::{self, Binaries, Supervisor, keeper_command, machine},
    updates::Revision,
};

/// How often the clock is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(15 * 60);
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
        runtimes: Arc::new(Runtimes::new(
            machine(),
            &around.paths.agents(),
            around.paths.trial(),
        )),
        binaries: means.binaries.clone(),
        revision: Revision::now(
            means
                .binaries
                .harness
                .as_deref()
                .unwrap_or(&means.binaries.dir),
            std::env::var("HYPERHIVE_FLAKE").ok().as_deref(),
        ),
        dashboard_port: around.dashboard_port,
        tasks: around.tasks.clone(),
        stop: around.stop.clone(),
    })
}

/// The agents' way to their model; none where engines sign their calls themselves.
///
/// # Errors
/// With the address or the header that makes no sense.
pub(super) fn gateway(
    means: &Means,
    config: &Config,
    books: &Arc<Books>,
) -> anyhow::Result<Option<Gateway>> {
    if !means.model.is_gated(config.engine.gateway) {
        return Ok(None);
    }
    let upstreams = Upstreams::new(&means.model.env, |name| std::env::var(name).ok())
        .context("the way to the model makes no sense: mend `engine.env` in hive.toml")?;
    let books: Arc<Books> = Arc::clone(books);
    Ok(Some(Gateway::new(gateway::Parts {
        upstreams,
        books,
        resolver: Arc::new(Outside),
        limits: gateway::Limits::default(),
        patience: gateway::Patience::default(),
    })))
}

/// Ends, at every midnight, the pauses of budgets of the day before; and once at the start.
pub(super) async fn new_days(host: Arc<Host>) {
    loop {
        match host.broker.run(budgets::new_day).await {
            Ok(Some(pauses)) => {
                host.books.forgive();
                host.harnesses.set_pauses(pauses, &|_| false);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "cannot begin a new day"),
        }
        // Clocks jump and machines sleep, so the time is looked at again.
        let wait = budgets::until_midnight(Timestamp::now()).min(LOOK_AGAIN);
        // Cancel-safe: both only wait.
        tokio::select! {
            () = host.stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
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
    host.supervisor.adopt(agents);
    rounds::begin(host, agents);
    if means.binaries.harness.is_some() {
        first_agent(host).await;
    }
}

/// Gives an agent of an earlier version its repositories, with what it was made with, and any agent
/// the files that are applied: the last daemon may have ended before they were in their place.
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
                    Some(applied) => {
                        repos.put_right(&name, &applied.tree)?;
                        applied.tree
                    }
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
    // It is a name or empty, which the configuration saw to.
    let Ok(name) = host.config.hive.root_agent.parse::<AgentName>() else {
        return;
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
