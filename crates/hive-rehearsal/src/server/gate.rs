//! The listener, which can go away and come back on the same port.
//!
//! While it is away the kernel itself refuses connections. A second socket that is bound to the
//! port but never listens keeps it from being given to somebody else meanwhile.

use std::{
    error::Error,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    StartError,
    body::Cut,
    socket::{Connection, Line},
};

/// Who answers the requests that come through a gate: the scripted model, or the recording proxy.
pub(crate) trait Answers: Send + Sync + 'static {
    /// The body of an answer.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Answers a request; an error ends the connection without an answer. May be dropped at any
    /// point when the client leaves or the server stops.
    fn answer(
        &self,
        request: Request<Incoming>,
        connection: Connection,
    ) -> impl Future<Output = Result<Response<Self::Body>, Cut>> + Send;
}

/// Connections at once; more wait in the kernel.
const MAX_CONNECTIONS: usize = 1024;

/// How long the kernel's queue of connections is.
const BACKLOG: u32 = 1024;

/// What the gate is told.
#[derive(Debug)]
enum Order {
    /// Stop listening and reset every connection; come back after a time, or when told.
    Shut(Option<Duration>),
    /// Listen again.
    Open,
}

/// The means to shut and open the gate.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    orders: mpsc::Sender<(Order, oneshot::Sender<()>)>,
    /// How many of the next connections are reset at once.
    to_reset: Arc<AtomicU32>,
}

impl Door {
    /// Returns when nothing listens any more.
    pub(crate) async fn shut(&self, time: Option<Duration>) {
        self.order(Order::Shut(time)).await;
    }

    /// Returns when the gate listens again.
    pub(crate) async fn open_again(&self) {
        self.order(Order::Open).await;
    }

    /// The next connections are reset before anything is read.
    pub(crate) fn reset_next(&self, connections: u32) {
        self.to_reset.store(connections, Ordering::Release);
    }

    async fn order(&self, order: Order) {
        let (done, obeyed) = oneshot::channel();
        // A gate that is gone listens to nothing, which is all that could be asked for.
        if self.orders.send((order, done)).await.is_ok() && obeyed.await.is_err() {
            tracing::debug!("the server stopped before the gate moved");
        }
    }

    fn takes_next_reset(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.to_reset
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less)
            .is_ok()
    }
}

/// The listener and what keeps its port.
#[derive(Debug)]
pub(crate) struct Gate {
    address: SocketAddr,
    listener: Option<TcpListener>,
    reopens_at: Option<Instant>,
    orders: mpsc::Receiver<(Order, oneshot::Sender<()>)>,
    door: Door,
    _port: TcpSocket,
}

impl Gate {
    /// Takes a port and listens.
    pub(crate) fn open(host: IpAddr, port: u16) -> Result<(Self, Door), StartError> {
        if !host.is_loopback() {
            return Err(StartError::NotLoopback(host));
        }
        let address = SocketAddr::new(host, port);
        let listen = || {
            let kept = bind(address)?;
            let address = kept.local_addr()?;
            let listener = bind(address)?.listen(BACKLOG)?;
            io::Result::Ok((kept, address, listener))
        };
        let failed = |source| StartError::Listen { address, source };
        let (kept, address, listener) = listen().map_err(failed)?;
        let (sender, orders) = mpsc::channel(8);
        let door = Door {
            orders: sender,
            to_reset: Arc::default(),
        };
        let gate = Self {
            address,
            listener: Some(listener),
            reopens_at: None,
            orders,
            door: door.clone(),
            _port: kept,
        };
        Ok((gate, door))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is cancelled.
    pub(crate) async fn run<A: Answers>(
        mut self,
        site: Arc<A>,
        tasks: TaskTracker,
        cancel: CancellationToken,
    ) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        // Every connection belongs to a time between two shuttings of the gate.
        let mut era = cancel.child_token();
        loop {
            // All arms are cancel-safe: a connection that was not accepted stays in the kernel's
            // queue, an order stays in the channel, and the time to reopen is kept apart.
            tokio::select! {
                () = cancel.cancelled() => return,
                order = self.orders.recv() => {
                    let Some((order, done)) = order else { return };
                    self.obey(order, &mut era, &cancel);
                    // Who asked may have gone.
                    done.send(()).ok();
                }
                () = reopening(self.reopens_at) => self.obey(Order::Open, &mut era, &cancel),
                (stream, slot) = accept(self.listener.as_ref(), &slots) => {
                    if self.door.takes_next_reset() {
                        let connection = Connection::default();
                        connection.reset_at_end();
                        drop(Line::new(stream, connection));
                        continue;
                    }
                    let serving = serve(stream, Arc::clone(&site), era.clone(), cancel.clone(), slot);
                    tasks.spawn(serving);
                }
            }
        }
    }

    fn obey(&mut self, order: Order, era: &mut CancellationToken, cancel: &CancellationToken) {
        match order {
            Order::Shut(time) => {
                self.listener = None;
                era.cancel();
                *era = cancel.child_token();
                self.reopens_at = time.map(|time| Instant::now() + time);
            }
            Order::Open if self.listener.is_some() => self.reopens_at = None,
            Order::Open => match bind(self.address).and_then(|socket| socket.listen(BACKLOG)) {
                Ok(listener) => {
                    self.listener = Some(listener);
                    self.reopens_at = None;
                }
                Err(error) => {
                    tracing::warn!(%error, address = %self.address, "cannot listen again yet");
                    self.reopens_at = Some(Instant::now() + Duration::from_millis(100));
                }
            },
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Two sockets may have the port as long as only one listens.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn reopening(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The next connection, when there is a listener and room.
async fn accept(
    listener: Option<&TcpListener>,
    slots: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        let Ok(slot) = Arc::clone(slots).acquire_owned().await else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(error) => {
                // Out of descriptors, most likely: others must end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve<A: Answers>(
    stream: TcpStream,
    site: Arc<A>,
    era: CancellationToken,
    cancel: CancellationToken,
    _slot: OwnedSemaphorePermit,
) {
    let connection = Connection::default();
    let line = Line::new(stream, connection.clone());
    let handler = service_fn(|request| {
        let site = Arc::clone(&site);
        let connection = connection.clone();
        async move { site.answer(request, connection).await }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(line), handler);
    // Dropping the connection in the middle is what both of the other arms are for.
    tokio::select! {
        served = serving => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended");
            }
        }
        () = era.cancelled() => {
            // A server that stops says goodbye; one that vanishes does not.
            if !cancel.is_cancelled() {
                connection.reset_at_end();
            }
        }
    }
}
