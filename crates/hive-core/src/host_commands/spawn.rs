//! `spawn`: registers an agent, opens its socket and has it started. The operator's own spawn needs
//! no approval.

use std::{
    cell::RefCell,
    net::{SocketAddr, TcpListener},
    sync::{Arc, PoisonError},
};

use hive_store::{
    Mail, failpoint,
    sqlite::{AgentRecord, Wanted},
};
use hive_wire::{
    AgentName, ErrorCode, WireError,
    host::{AgentRow, AgentState, Network, Runtime, Spawn},
};
use serde_json::json;

use super::{Host, list};
use crate::{
    agent_commands::Caller,
    agent_config::{self, AGENT_TOML, AgentConfig},
    approvals::{self, Outcome},
    broker::Desk,
    egress::Policy,
    pages, ports,
    repos::Tree,
    server::{Limits, Listener},
    supervisor::{self, Wish},
};

pub(crate) async fn run(host: Arc<Host>, command: Spawn) -> Result<AgentRow, WireError> {
    let tree = first_config(&command)?;
    create(host, command, tree, "spawned by the operator").await
}

/// Makes an agent with this configuration; `message` says in its history who decided that.
pub(crate) async fn create(
    host: Arc<Host>,
    command: Spawn,
    tree: Tree,
    message: &str,
) -> Result<AgentRow, WireError> {
    let name = command.name.clone();
    let made = create_quietly(&host, command, tree, message).await;
    let result = match &made {
        Ok(row) if row.runtime == Runtime::None => return made,
        Ok(row) if row.state == AgentState::Failed => Err(row.note.clone()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    host.tell_root(&name, Outcome::Spawned(result)).await;
    made
}

/// The configuration that the operator's own spawn begins with.
fn first_config(command: &Spawn) -> Result<Tree, WireError> {
    let runtime = Some(command.runtime).filter(|one| *one != Runtime::Auto);
    let wishes = [
        ("model", command.model.as_deref()),
        ("engine", command.engine.as_deref()),
        ("runtime", runtime.map(Runtime::as_str)),
    ];
    let wishes: Vec<(&str, &str)> = wishes
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.filter(|value| !value.is_empty())?)))
        .collect();
    let text = agent_config::first(command.name.as_str(), &wishes);
    AgentConfig::parse(&text)
        .map_err(|error| WireError::new(ErrorCode::BadRequest, error.to_string()))?;
    Ok(Tree::of(AGENT_TOML, text))
}

/// Gives an agent its repositories: what is applied, and what it can be changed with.
async fn make_repos(
    host: &Host,
    name: &AgentName,
    tree: Tree,
    message: &str,
) -> Result<(), WireError> {
    let (name, message) = (name.clone(), message.to_owned());
    let configs = Arc::clone(&host.approvals.configs);
    let proposed = host.paths.proposed();
    host.approvals
        .on_disk(move |repos| {
            // In this order: what lies in the way of the proposal stops all of it.
            let made = repos
                .first_proposal(&name, &tree)
                .and_then(|()| repos.apply(&name, &tree, &message));
            made.map_err(|error| approvals::storage(&error))?;
            supervisor::hand_on(&proposed, &proposed.join(name.as_str()))
                .map_err(|error| approvals::storage(&error.into()))?;
            configs.reload(&name);
            Ok(())
        })
        .await
}

async fn create_quietly(
    host: &Arc<Host>,
    command: Spawn,
    tree: Tree,
    message: &str,
) -> Result<AgentRow, WireError> {
    let alone = host.lifecycle.lock().await;
    let (runtime, why) = host.runtime_for(command.runtime).await?;
    if let Some(engine) = &command.engine {
        host.check_engine(engine)?;
    }
    let (name, parent) = (command.name.clone(), command.parent.clone());
    host.broker
        .run(move |desk| desk.roster.check_new(&name, parent.as_ref()))
        .await?;
    if runtime != Runtime::None {
        make_repos(host, &command.name, tree, message).await?;
    }
    let registered = host
        .broker
        .run(move |desk| register(desk, &command, runtime))
        .await?;
    let Registered {
        agent,
        listener,
        kept_messages,
    } = registered;
    failpoint!("spawn::registered");
    if let Err(error) = host.open_socket(&agent.name, runtime) {
        return Err(WireError::new(
            ErrorCode::Storage,
            format!(
                "`{}` is registered, but its socket cannot be opened: {error:#}",
                agent.name
            ),
        )
        .hint("mend the directory it lies in; the next start opens it"));
    }
    if runtime != Runtime::None
        && let Err(error) = host.open_gateway(&agent)
    {
        tracing::error!(agent = %agent.name, %error, "cannot open its way to the model");
    }
    failpoint!("spawn::socket_open");
    host.open_page(&agent.name, agent.port, Some(listener));
    if runtime != Runtime::None {
        host.supervisor.look_after(&agent);
    }
    drop(alone);
    failpoint!("spawn::looked_after");
    if runtime != Runtime::None {
        host.supervisor.fulfilled(&agent, Wish::Start).await?;
    }
    let found = host.broker.run(|desk| list::with_inbox(desk, agent)).await;
    let (agent, inbox) = found?;
    let mut row = list::row(host, agent, &inbox);
    if row.note.is_empty() {
        row.note = why;
    }
    if kept_messages > 0 {
        row.note = format!(
            "{} {kept_messages} messages to the {} before it wait in its inbox",
            row.note, row.name
        );
        row.note = row.note.trim_start().to_owned();
    }
    Ok(row)
}

/// An agent that is on disk.
struct Registered {
    agent: AgentRecord,
    listener: TcpListener,
    /// Messages to an earlier agent of its name.
    kept_messages: u32,
}

fn register(
    desk: &mut Desk<'_>,
    command: &Spawn,
    runtime: Runtime,
) -> Result<Registered, WireError> {
    let (name, parent) = (&command.name, command.parent.as_ref());
    desk.roster.check_new(name, parent)?;
    let former = desk.store(|tx| tx.former_port(name))?;
    let (port, listener) = choose_port(desk, name, former)?;
    let agent = desk.store(|tx| {
        let mut agent = tx.register_agent(name, parent, runtime, port)?;
        if runtime != Runtime::None {
            agent.run.wanted = Wanted::Running;
            agent.run.engine = command.engine.clone().unwrap_or_default();
            agent.run.model = command.model.clone().unwrap_or_default();
            tx.set_run(name, &agent.run)?;
        }
        Ok(agent)
    })?;
    desk.roster.insert(agent.clone());
    let inbox = desk.store(|tx| tx.inbox(&name.clone().into()))?;
    let kept_messages = inbox.unread + inbox.inflight;
    let data = json!({
        "runtime": runtime,
        "parent": parent,
        "port": port,
        "generation": agent.run.generation,
        "kept_messages": kept_messages,
    });
    desk.report_agent(name, "agent_spawned", &data);
    Ok(Registered {
        agent,
        listener,
        kept_messages,
    })
}

/// The port it had before, if that is free; else the one its name leads to, or the next that is
/// free (C4). It is listened on from here, so that nobody else takes it.
fn choose_port(
    desk: &Desk<'_>,
    name: &AgentName,
    former: Option<u16>,
) -> Result<(u16, TcpListener), WireError> {
    let bind = desk.config.dashboard.bind;
    let taken = RefCell::new(None);
    let is_taken = |port| {
        if desk.roster.has_port(port) {
            return true;
        }
        *taken.borrow_mut() = pages::try_listen(SocketAddr::new(bind, port));
        taken.borrow().is_none()
    };
    let is_root = name.as_str() == desk.config.hive.root_agent;
    let wanted = former.or(is_root.then_some(ports::ROOT_AGENT_PORT));
    let range = &desk.config.dashboard.agent_ports.0;
    let port = wanted
        .filter(|port| !is_taken(*port))
        .or_else(|| ports::assign(name, range, is_taken));
    port.zip(taken.take()).ok_or_else(|| {
        WireError::new(
            ErrorCode::LimitReached,
            format!(
                "every port from {} to {} is taken",
                range.start(),
                range.end()
            ),
        )
        .hint("widen `dashboard.agent_ports` in hive.toml")
    })
}

impl Host {
    /// The runtime that is meant, and why.
    async fn runtime_for(&self, wanted: Runtime) -> Result<(Runtime, String), WireError> {
        let wanted = match wanted {
            Runtime::Auto => self.config.agents.runtime,
            other => other,
        };
        match wanted {
            Runtime::Auto => return Ok(self.supervisor.best_runtime().await),
            Runtime::None => return Ok((Runtime::None, String::new())),
            _ => {}
        }
        let binaries = self.supervisor.binaries();
        if binaries.harness.is_none() {
            return Err(
                WireError::new(ErrorCode::Unsupported, binaries.no_harness())
                    .hint("install `hive` beside hive-c0re, or use `--runtime none`"),
            );
        }
        if wanted == Runtime::Process {
            let why = "NO ISOLATION: it may do whatever your user may";
            return Ok((wanted, why.to_owned()));
        }
        match self.supervisor.check_runtime(wanted).await {
            Ok(()) => Ok((wanted, String::new())),
            Err(unavailable) => {
                let (kind, why) = (wanted.as_str(), &unavailable.why);
                Err(WireError::new(
                    ErrorCode::Unsupported,
                    format!("the runtime `{kind}` does not work here: {why}"),
                )
                .hint(unavailable.remedy))
            }
        }
    }

    /// Refuses an engine that is not there, before anything is registered.
    fn check_engine(&self, wanted: &str) -> Result<(), WireError> {
        let found = self.supervisor.binaries().engine(wanted, &self.config);
        found.map(|_| ()).map_err(|problem| {
            WireError::new(ErrorCode::BadRequest, problem)
                .hint("an engine is `auto`, `claude`, `native` or a command")
        })
    }

    /// An agent as whoever speaks for it, on its socket or elsewhere: what it may do is judged by
    /// the one gate, wherever it comes from.
    pub(crate) fn caller(&self, name: &AgentName) -> Caller {
        Caller {
            name: name.clone(),
            broker: self.broker.clone(),
            gate: Arc::clone(&self.gate),
            harnesses: Arc::clone(&self.harnesses),
            approvals: Arc::clone(&self.approvals),
            supervisor: Arc::clone(&self.supervisor),
            config: Arc::clone(&self.config),
            paths: self.paths.clone(),
            is_gated: self.gateway.is_some(),
            tasks: self.tasks.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Listens on an agent's socket. Idempotent: the socket of an earlier daemon is replaced (C13).
    pub(crate) fn open_socket(&self, name: &AgentName, runtime: Runtime) -> anyhow::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let dir = self.paths.agent_run(name);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        if runtime != Runtime::None {
            supervisor::open_to(&dir, supervisor::claim(&self.paths, name, runtime)?)?;
        }
        let caller = self.caller(name);
        let limits = Limits {
            connections: self.config.limits.connections_per_agent,
            line_time: self.config.limits.line_time(),
            ..Limits::default()
        };
        let _on_brokers_thread = self.broker.enter();
        let listener = Listener::start(
            &self.paths.agent_socket(name),
            caller,
            limits,
            &self.tasks,
            self.stop.child_token(),
        )?;
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.insert(name.clone(), listener);
        Ok(())
    }

    /// Opens an agent's way to its model, if the hive runs it.
    pub(crate) fn open_gateway(&self, agent: &AgentRecord) -> std::io::Result<()> {
        let Some(gateway) = &self.gateway else {
            return Ok(());
        };
        let agents = &self.config.agents;
        let own = self.approvals.configs.get(&agent.name).network;
        let egress = match agents.network(own, agent.runtime) {
            Network::Gateway | Network::Auto => Some(Policy::new(&agents.egress)),
            Network::None | Network::Host => None,
        };
        gateway.open(&agent.name, &self.paths.gateway_socket(&agent.name), egress)
    }
}
