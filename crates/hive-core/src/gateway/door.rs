//! One agent's door: accepting connections on its socket, and telling apart what is asked.

use std::{convert::Infallible, sync::Arc, time::Duration};

use hive_wire::AgentName;
use hyper::{Method, Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Body, Shared, forward};
use crate::{
    egress::{self, Policy},
    http::Patient,
};

/// The largest head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// How much one agent may have under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections to its socket.
    pub(crate) connections: usize,
    /// Calls whose answer has not begun.
    pub(crate) calls: usize,
    /// Tunnels and plain requests to the world.
    pub(crate) trips: usize,
    /// Names that are being looked up.
    pub(crate) lookups: usize,
    /// The longest request to a model, in bytes.
    pub(crate) request: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            calls: 32,
            trips: 128,
            lookups: 8,
            // A service takes 32 MB; there may be something around it.
            request: 40 * 1024 * 1024,
        }
    }
}

/// The door of one agent.
pub(crate) struct Door {
    agent: AgentName,
    shared: Arc<Shared>,
    egress: Option<Arc<Policy>>,
    calls: Semaphore,
    trips: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
}

impl Door {
    pub(super) fn new(agent: AgentName, shared: &Arc<Shared>, egress: Option<Policy>) -> Self {
        Self {
            agent,
            egress: egress.map(Arc::new),
            calls: Semaphore::new(shared.limits.calls),
            trips: Arc::new(Semaphore::new(shared.limits.trips)),
            lookups: Arc::new(Semaphore::new(shared.limits.lookups)),
            shared: Arc::clone(shared),
        }
    }

    pub(super) fn agent(&self) -> &AgentName {
        &self.agent
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn calls(&self) -> &Semaphore {
        &self.calls
    }

    /// Answers one request, whichever of the three forms it has.
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Result<Response<Body>, Infallible> {
        let is_tunnel = request.method() == Method::CONNECT;
        if !is_tunnel && request.uri().scheme().is_none() {
            return Ok(forward::call(&self, request).await);
        }
        let desk = egress::Desk {
            policy: self.egress.clone(),
            resolver: &self.shared.resolver,
            patience: self.shared.patience,
            seats: &self.trips,
            lookups: &self.lookups,
            tasks: &tasks,
            stop: &stop,
            log: &|trip| self.shared.books.went(&self.agent, trip),
        };
        Ok(if is_tunnel {
            desk.tunnel(request).await
        } else {
            desk.fetch(request).await
        })
    }
}

/// Takes connections until `stop`.
pub(super) async fn accept(
    listener: UnixListener,
    door: Arc<Door>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let seats = Arc::new(Semaphore::new(door.shared.limits.connections));
    loop {
        // A peer waits in the backlog until there is a seat. Cancel-safe: a permit that is dropped
        // is given back, and an accept that is dropped leaves the connection in the backlog.
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = async {
                let seat = Arc::clone(&seats).acquire_owned().await;
                (seat, listener.accept().await)
            } => accepted,
        };
        let (seat, stream) = match accepted {
            (Ok(seat), Ok((stream, _))) => (seat, stream),
            (_, Err(error)) => {
                tracing::warn!(agent = %door.agent, %error, "cannot accept at its gateway");
                // Out of descriptors: give those that end a moment.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            (Err(_), _) => return,
        };
        let talk = talk(stream, Arc::clone(&door), tasks.clone(), stop.clone());
        tasks.spawn(async move {
            talk.await;
            drop(seat);
        });
    }
}

async fn talk(stream: UnixStream, door: Arc<Door>, tasks: TaskTracker, stop: CancellationToken) {
    let patience = door.shared.patience;
    let ending = stop.clone();
    let service =
        service_fn(move |request| Arc::clone(&door).answer(request, tasks.clone(), stop.clone()));
    let io = TokioIo::new(Patient::new(stream, patience.taking));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_buf_size(MAX_HEAD)
        .half_close(true)
        .serve_connection(io, service)
        .with_upgrades();
    // Cancel-safe: what is dropped is a connection of a door that is closed.
    let ended = tokio::select! {
        ended = connection => ended,
        () = ending.cancelled() => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to a gateway ended badly");
    }
}
