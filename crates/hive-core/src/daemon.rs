//! The daemon's life on one page: config → build → run → signal → drain.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Context;
use hive_store::{
    Options,
    event_log::{self, EventLog},
    sqlite::{self, RootLock},
};
use hive_wire::{AgentName, Timestamp};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    broker::{Parts, Writer},
    config::Config,
    host_commands::Host,
    http::{self, Site},
    metrics::Metrics,
    paths::Paths,
    roster::Roster,
    server::{Limits, Listener},
};

/// How long connections get to finish once the daemon stops.
const GRACE: Duration = Duration::from_secs(5);

/// What the command line decides.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where everything lies.
    pub paths: Paths,
    /// The dashboard's port, instead of the configured one.
    pub port: Option<u16>,
}

/// A daemon that is up, before it is asked to stop.
pub struct Running {
    host: Arc<Host>,
    writer: Writer,
    tasks: TaskTracker,
    stop: CancellationToken,
    _lock: RootLock,
}

impl Running {
    /// Opens everything, in the order in which a failure leaves nothing behind.
    ///
    /// # Errors
    /// With what is wrong and what to do about it.
    pub async fn start(setup: Setup) -> anyhow::Result<Self> {
        let paths = setup.paths;
        paths.prepare()?;
        let config = Arc::new(Config::load(&paths.config())?);
        let lock = RootLock::acquire(&paths.lock()).context("a root has one daemon at a time")?;
        raise_open_files();
        let (store, readers) = open_store(&paths, &config)?;
        let limits = event_log::Limits {
            max_events: config.limits.events,
            ..event_log::Limits::default()
        };
        let events = Arc::new(EventLog::open(&paths.events(), limits)?);
        let metrics = Arc::new(Metrics::new());
        let agents = readers
            .agents()
            .context("cannot read the registry of agents")?;
        let port = setup.port.unwrap_or(config.dashboard.port);
        let (http, address) = listen(SocketAddr::new(config.dashboard.bind, port)).await?;
        let token = operator_token(&paths.operator_token())?;

        let stop = CancellationToken::new();
        let parts = Parts {
            store,
            roster: Roster::new(agents.iter().cloned()),
            config: Arc::clone(&config),
            events: Arc::clone(&events),
            metrics: Arc::clone(&metrics),
        };
        let ended = stop.clone();
        let (broker, writer) = Writer::start(parts, move || ended.cancel())?;
        let tasks = TaskTracker::new();
        let host = Arc::new(Host {
            paths,
            broker,
            readers,
            events,
            lifecycle: tokio::sync::Mutex::new(()),
            sockets: Mutex::new(BTreeMap::new()),
            tasks: tasks.clone(),
            stop: stop.clone(),
            started_at: Timestamp::now(),
            dashboard: format!("http://{address}"),
            config: Arc::clone(&config),
        });
        for agent in &agents {
            host.open_socket(&agent.name)
                .with_context(|| format!("cannot open the socket of {}", agent.name))?;
        }
        let hosts = own_hosts(address, &config.dashboard.hosts);
        serve_http(
            http,
            Site {
                metrics,
                token: token.into(),
                hosts,
            },
            &tasks,
            stop.clone(),
        );
        listen_for_operator(&host)?;
        tracing::info!(root = %host.paths.root.display(), agents = agents.len(), %address, "up");
        Ok(Self {
            host,
            writer,
            tasks,
            stop,
            _lock: lock,
        })
    }

    /// Where the dashboard is.
    pub fn url(&self) -> &str {
        &self.host.dashboard
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
        let signalled = wait_for_signal(&self.stop).await;
        tracing::info!(reason = signalled, "stopping");
        notify(&[sd_notify::NotifyState::Stopping]);
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
        let events = Arc::clone(&self.host.events);
        let closed = tokio::task::spawn_blocking(move || {
            self.writer.release();
            events.close()
        })
        .await;
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

async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
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

fn serve_http(listener: TcpListener, site: Site, tasks: &TaskTracker, stop: CancellationToken) {
    tasks.spawn(async move {
        let served = axum::serve(listener, http::router(site))
            .with_graceful_shutdown(stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "HTTP ended");
        }
    });
}

/// The values of `Host` that mean this daemon.
fn own_hosts(address: SocketAddr, further: &[String]) -> Arc<[String]> {
    let port = address.port();
    let names = [
        "localhost".to_owned(),
        address.ip().to_string(),
        format!("[{}]", address.ip()),
    ];
    let with_port = names
        .iter()
        .chain(further)
        .map(|name| format!("{name}:{port}"));
    with_port.chain(further.iter().cloned()).collect()
}

/// The operator's token, made at the first start.
fn operator_token(path: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Ok(token) if token.trim().len() >= 32 => return Ok(token.trim().to_owned()),
        Ok(_) => anyhow::bail!(
            "{} is cut short: remove it to get a new one",
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).context("the kernel gives no random bytes")?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_private(path, &format!("{token}\n"))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(token)
}

/// Writes a file that is there as a whole or not at all: a start that is cut short leaves no half
/// of it behind.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)
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

async fn wait_for_signal(stop: &CancellationToken) -> &'static str {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::error!("cannot listen for signals");
        return "no signals";
    };
    // Cancel-safe: nothing is consumed but the signal itself.
    tokio::select! {
        _ = terminate.recv() => "terminated",
        _ = interrupt.recv() => "interrupted",
        () = stop.cancelled() => "the store ended",
    }
}

/// Tells systemd, if it started us.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot tell the service manager");
    }
}
