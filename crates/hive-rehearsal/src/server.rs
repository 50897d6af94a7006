//! The server: a listener on loopback, its connections, and the handle that tests hold.
//!
//! Every task belongs to one tracker and ends with one token. A connection can be reset in the
//! middle of an answer (`socket.rs`), and the listener can really go away for a time (`gate.rs`),
//! since that is what clients must be rehearsed against.

mod answer;
mod beside;
mod body;
mod gate;
mod intake;
pub(crate) mod ledger;
mod route;
mod site;
mod socket;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::gate::Gate;
use self::{
    gate::Door,
    ledger::{Ledger, Seen, TooFewRequests},
    site::Site,
};
use crate::{recording::Recorder, scenario::Scenario};

pub(crate) use self::{
    body::Cut,
    gate::Answers,
    intake::{Intake, Room, Unread, body_value},
    socket::Connection,
};

/// How a rehearsal is served.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address, which must be one of loopback.
    pub host: IpAddr,
    /// The port; 0 for any.
    pub port: u16,
    /// Where requests are recorded.
    pub record: Option<PathBuf>,
    /// How many bytes of requests are kept for [`Rehearsal::requests`].
    pub keep_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            record: None,
            keep_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Why a rehearsal cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is open to others.
    #[error("{0} is not an address of loopback: a rehearsal serves this machine alone")]
    NotLoopback(IpAddr),
    /// The port is taken, or may not be used.
    #[error("cannot listen on {address}: {source}; choose another with --port, or 0 for any")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The recording cannot be written.
    #[error("cannot record to {path}: {source}")]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// How long connections get to end when the server stops; they are cut then.
const GRACE: Duration = Duration::from_secs(5);

/// A scripted model that is being served. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub struct Rehearsal {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    door: Door,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

impl Rehearsal {
    /// Serves a scenario on a port of its own.
    ///
    /// # Errors
    /// When there is no port to be had.
    pub async fn start(scenario: Scenario) -> Result<Self, StartError> {
        Self::start_with(scenario, Options::default()).await
    }

    /// Serves a scenario as told.
    ///
    /// # Errors
    /// When the address is not of loopback, the port is taken, or the recording cannot be written.
    pub async fn start_with(scenario: Scenario, options: Options) -> Result<Self, StartError> {
        let record = options.record.as_deref().map(Recorder::open).transpose();
        let recorder = record.map_err(|source| StartError::Record {
            path: options.record.clone().unwrap_or_default(),
            source,
        })?;
        let refused_for = scenario.refuse_at_start.0;
        let (gate, door) = Gate::open(options.host, options.port)?;
        let address = gate.address();
        let ledger = Arc::new(Ledger::new(options.keep_bytes));
        let site = Site::new(scenario, Arc::clone(&ledger), recorder, door.clone());
        let tasks = TaskTracker::new();
        let cancel = CancellationToken::new();
        tasks.spawn(gate.run(site, tasks.clone(), cancel.clone()));
        if !refused_for.is_zero() {
            door.shut(Some(refused_for)).await;
        }
        Ok(Self {
            address,
            ledger,
            door,
            tasks,
            cancel,
        })
    }

    /// The base URL, for `ANTHROPIC_BASE_URL`; chat completions are under `/v1` of it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What the model was asked, oldest first: the calls that the script answered.
    pub fn requests(&self) -> Vec<Seen> {
        self.ledger.calls()
    }

    /// Every request, also those for models, counts and greetings.
    pub fn all_requests(&self) -> Vec<Seen> {
        self.ledger.all()
    }

    /// Waits until the model was asked `count` times, and gives what it was asked.
    ///
    /// # Errors
    /// When that did not happen within a minute.
    pub async fn wait_for_requests(&self, count: u64) -> Result<Vec<Seen>, TooFewRequests> {
        self.ledger.wait_for_calls(count).await
    }

    /// Resets every connection and refuses new ones until [`Rehearsal::accept_again`].
    pub async fn refuse(&self) {
        self.door.shut(None).await;
    }

    /// Listens again after [`Rehearsal::refuse`].
    pub async fn accept_again(&self) {
        self.door.open_again().await;
    }

    /// Stops listening and ends every connection.
    pub async fn stop(self) {
        self.cancel.cancel();
        self.tasks.close();
        if tokio::time::timeout(GRACE, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(left = self.tasks.len(), "connections did not end in time");
        }
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
