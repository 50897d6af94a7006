//! The daemon's life on one page: config → build → run → signal → drain.

mod crew;
mod rounds;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Context;
use hive_store::{
    Options,
    event_log::{self, EventLog},
    sqlite::{self, AgentRecord, RootLock},
};
use hive_wire::{AgentName, Timestamp, host};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access,
    agent_config::Configs,
    approvals::{self, Approvals},
    broker::{Parts, Writer},
    config::Config,
    gateway::{Books, Shelf},
    harnesses::Harnesses,
    host_commands::Host,
    metrics::Metrics,
    model::Rehearsal,
    notifier::{self, Notifier},
    paths::Paths,
    pauses::Pauses,
    permissions::Gate,
    repos::Repos,
    roster::Roster,
    server::{Limits, Listener},
    updates,
};

/// How long connections get to finish once the daemon stops.
const GRACE: Duration = Duration::from_secs(5);
/// How long the gateway gets to end what goes through it.
const GATEWAY_GRACE: Duration = Duration::from_secs(1);
/// The largest event in the log: what a harness may post, and the labels around it.
const MAX_EVENT: usize = hive_wire::report::MAX_EVENT_DATA + 4 * 1024;

/// What the command line decides.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where everything lies.
    pub paths: Paths,
    /// The dashboard's port, instead of the configured one.
    pub port: Option<u16>,
    /// What becomes of agents at its beginning and its end.
    pub mode: Mode,
}

/// What becomes of agents when the daemon comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are adopted, and left running.
    Serve,
    /// A new hive gets its first agent and, where there is no key, a rehearsed model; what runs is
    /// stopped at the end.
    Up,
}

/// A daemon that is up, before it is asked to stop.
pub struct Running {
    host: Arc<Host>,
    writer: Writer,
    tasks: TaskTracker,
    stop: CancellationToken,
    mode: Mode,
    signals: Signals,
    /// The rehearsed model of a demo, which ends with us.
    rehearsal: Option<Rehearsal>,
    _lock: RootLock,
}

impl Running {
    /// Opens everything, in the order in which a failure leaves nothing behind.
    ///
    /// # Errors
    /// With what is wrong and what to do about it.
    #[expect(
        clippy::too_many_lines,
        reason = "one list: what is opened after what, and what each is made from"
    )]
    pub async fn start(setup: Setup) -> anyhow::Result<Self> {
        let paths = setup.paths;
        paths.prepare()?;
        let config = Arc::new(Config::load(&paths.config())?);
        let lock = RootLock::acquire(&paths.lock()).context("a root has one daemon at a time")?;
        let signals = Signals::listen()?;
        raise_open_files();
        let (store, readers) = open_store(&paths, &config)?;
        let events = open_events(&paths, &config)?;
        let metrics = Arc::new(Metrics::new());
        let agents = readers
            .agents()
            .context("cannot read the registry of agents")?;
        let (http, address) = listen(&config, setup.port).await?;
        let doors = Arc::new(Access::open(&paths.operator_token(), &paths.sessions())?);
        let means = crew::Means::find(setup.mode, &paths, &config, &agents).await?;
        let gate = open_gate(&readers, &config)?;
        let pauses = Pauses::new(readers.pauses().context("cannot read who is paused")?);
        let harnesses = know_harnesses(&readers, &events, pauses.clone(), means.is_shared())?;

        let repos = Repos::new(&paths.state);
        repos.prepare()?;
        let configs = Arc::new(Configs::new(repos.clone(), &paths.root));

        let stop = CancellationToken::new();
        let parts = Parts {
            store,
            roster: Roster::new(agents.iter().cloned()),
            pauses,
            config: Arc::clone(&config),
            events: Arc::clone(&events),
            metrics: Arc::clone(&metrics),
        };
        let ended = stop.clone();
        let (broker, writer) = Writer::start(parts, move || ended.cancel())?;
        let tasks = TaskTracker::new();
        let around = crew::Around {
            paths: &paths,
            config: &config,
            configs: &configs,
            broker: &broker,
            gate: &gate,
            dashboard_port: address.port(),
            tasks: &tasks,
            stop: &stop,
        };
        let supervisor = crew::supervisor(&means, &around);
        let books = Arc::new(Books::new(Shelf {
            broker: broker.clone(),
            harnesses: Arc::clone(&harnesses),
            events: Arc::clone(&events),
            config: Arc::clone(&config),
            configs: Arc::clone(&configs),
        }));
        let gateway = crew::gateway(&means, &config, &books)?;
        let approvals = Approvals::new(&configs, &repos, &broker, paths.root.clone(), &tasks);
        let host = Arc::new(Host {
            supervisor,
            gateway,
            books,
            approvals: Arc::new(approvals),
            paths,
            broker,
            readers,
            events,
            harnesses,
            gate,
            access: doors,
            metrics,
            lifecycle: tokio::sync::Mutex::new(()),
            updating: tokio::sync::Mutex::new(()),
            sockets: Mutex::new(BTreeMap::new()),
            pages: Mutex::new(BTreeMap::new()),
            tasks: tasks.clone(),
            stop: stop.clone(),
            started_at: Timestamp::now(),
            notifier: Notifier::new(&config.notify, &format!("http://{address}")),
            dashboard: format!("http://{address}"),
            config: Arc::clone(&config),
        });
        open_doors(&host, &agents, http, address)?;
        begin(&host, &means, &agents).await?;
        tracing::info!(root = %host.paths.root.display(), agents = agents.len(), %address, "up");
        Ok(Self {
            host,
            writer,
            tasks,
            stop,
            mode: setup.mode,
            signals,
            rehearsal: means.rehearsal,
            _lock: lock,
        })
    }

    /// Where the dashboard is.
    pub fn url(&self) -> &str {
        &self.host.dashboard
    }

    /// A link to the dashboard that works once.
    ///
    /// # Errors
    /// When the system gives no random number.
    pub fn link(&self) -> std::io::Result<String> {
        let (code, _) = self
            .host
            .access
            .new_code(crate::access::Audience::Operator)?;
        Ok(format!("{}/#code={code}", self.host.dashboard))
    }

    /// The agents that the hive runs, by name, and what runs them.
    pub fn crew(&self) -> Vec<(AgentName, host::Runtime)> {
        self.host.supervisor.crew()
    }

    /// Whether a rehearsed model answers instead of a real one.
    pub fn is_rehearsed(&self) -> bool {
        self.rehearsal.is_some()
    }

    /// Where the socket of an agent of this name is, or would be.
    pub fn agent_socket(&self, name: &AgentName) -> PathBuf {
        self.host.paths.agent_socket(name)
    }

    /// Runs until a signal or a failing store, then drains: no new work, answers for what is
    /// under way, everything on disk.
    ///
    /// # Errors
    /// What ended the store.
    pub async fn run(mut self) -> anyhow::Result<()> {
        notify(&[sd_notify::NotifyState::Ready]);
        // Cancel-safe: both only wait.
        let signalled = tokio::select! {
            signal = self.signals.next() => signal,
            () = self.stop.cancelled() => "the store ended",
        };
        tracing::info!(reason = signalled, "stopping");
        notify(&[sd_notify::NotifyState::Stopping]);
        if self.mode == Mode::Up {
            // The broker still works, so that turns that are under way end in good order.
            // Cancel-safe: what is dropped goes on in tasks, and a second signal hurries them.
            tokio::select! {
                () = self.host.supervisor.stop_for_now() => {}
                _ = self.signals.next() => self.host.supervisor.kill_for_now().await,
            }
        }
        // What goes through the gateway is cut and counted while there is somebody to count it.
        if let Some(gateway) = &self.host.gateway {
            gateway.shut(GATEWAY_GRACE).await;
        }
        self.host.broker.stop();
        // The broker first: it answers everybody who waits, and those answers still go out.
        let ended = self.writer.ended().await;
        self.stop.cancel();
        self.tasks.close();
        if timeout(GRACE, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                left = self.tasks.len(),
                "some connections did not end in time"
            );
        }
        let (events, rehearsal) = (Arc::clone(&self.host.events), self.rehearsal);
        let closed = tokio::task::spawn_blocking(move || {
            drop(rehearsal);
            self.writer.release();
            events.close()
        });
        let closed = closed.await;
        if let Ok(Err(error)) = closed {
            tracing::warn!(%error, "the event log did not end cleanly");
        }
        ended
    }
}

fn open_store(
    paths: &Paths,
    config: &Config,
) -> anyhow::Result<(hive_store::Store, hive_store::Readers)> {
    let options = Options {
        inbox_depth: config.limits.inbox_depth,
        deliveries_before_dead: config.limits.deliveries_before_dead,
        ..Options::default()
    };
    sqlite::open(&paths.database(), &options).map_err(|error| {
        let remedy = error.remedy();
        anyhow::Error::new(error).context(format!("cannot open the database; {remedy}"))
    })
}

fn open_events(paths: &Paths, config: &Config) -> anyhow::Result<Arc<EventLog>> {
    let limits = event_log::Limits {
        max_events: config.limits.events,
        stream_events: config.limits.events_per_agent,
        stream_bytes: config.limits.event_bytes_per_agent(),
        max_event_bytes: MAX_EVENT,
        ..event_log::Limits::default()
    };
    Ok(Arc::new(EventLog::open(&paths.events(), limits)?))
}

/// What is on disk of the harnesses; the rest they say when they connect.
fn know_harnesses(
    readers: &hive_store::Readers,
    events: &Arc<EventLog>,
    pauses: Pauses,
    has_shared_key: bool,
) -> anyhow::Result<Arc<Harnesses>> {
    let lines = readers
        .status_lines()
        .context("cannot read what the agents say of themselves")?;
    let harnesses = Harnesses::new(Arc::clone(events), lines, pauses, has_shared_key);
    Ok(Arc::new(harnesses))
}

/// What the agents were granted; an agent is never let in before this is known.
fn open_gate(readers: &hive_store::Readers, config: &Config) -> anyhow::Result<Arc<Gate>> {
    let stored = readers
        .permissions()
        .context("cannot read what the agents are granted")?;
    let rate = config.limits.rate();
    Ok(Arc::new(Gate::new(&config.hive.root_agent, rate, stored)))
}

/// Has everything run that runs by itself, and then the operator heard.
async fn begin(
    host: &Arc<Host>,
    means: &crew::Means,
    agents: &[AgentRecord],
) -> anyhow::Result<()> {
    host.tasks.spawn(crew::new_days(Arc::clone(host)));
    crew::muster(host, means, agents).await;
    listen_for_operator(host)?;
    host.tasks.spawn(notifier::run(Arc::clone(host)));
    let early = Arc::clone(host);
    host.tasks.spawn(async move {
        approvals::take_up(&early).await;
        if let Err(error) = updates::update_all(&early).await {
            tracing::warn!(%error, "agents were not updated");
        }
    });
    Ok(())
}

/// Opens the socket and the page of every agent, and the dashboard.
fn open_doors(
    host: &Arc<Host>,
    agents: &[AgentRecord],
    http: TcpListener,
    address: SocketAddr,
) -> anyhow::Result<()> {
    for agent in agents {
        host.open_socket(&agent.name, agent.runtime)
            .with_context(|| format!("cannot open the socket of {}", agent.name))?;
        if agent.runtime != host::Runtime::None {
            host.open_gateway(agent)
                .with_context(|| format!("cannot open the gateway of {}", agent.name))?;
        }
        host.open_page(&agent.name, agent.port, None);
    }
    host.serve_dashboard(http, address);
    Ok(())
}

async fn listen(config: &Config, port: Option<u16>) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let port = port.unwrap_or(config.dashboard.port);
    let address = SocketAddr::new(config.dashboard.bind, port);
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}: choose another port with --port or `dashboard.port` in \
             hive.toml"
        )
    })?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Opens the admin socket, last of all: whoever is answered there finds everything else open.
fn listen_for_operator(host: &Arc<Host>) -> anyhow::Result<Listener> {
    let path = host.paths.host_socket();
    let limits = Limits {
        connections: 256,
        line_time: host.config.limits.line_time(),
        ..Limits::default()
    };
    Listener::start(
        &path,
        Arc::clone(host),
        limits,
        &host.tasks,
        host.stop.clone(),
    )
    .with_context(|| format!("cannot listen on {}", path.display()))
}

/// Every agent has several connections: take as many descriptors as the system allows.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// The signals that end a daemon. They are listened for from the beginning: one that comes while
/// agents are started must not leave them behind.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them; which one.
    async fn next(&mut self) -> &'static str {
        // Cancel-safe: nothing is consumed but the signal itself.
        tokio::select! {
            _ = self.terminate.recv() => "terminated",
            _ = self.interrupt.recv() => "interrupted",
        }
    }
}

/// Tells systemd, if it started us.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot tell the service manager");
    }
}
