//! Accepting connections on a port: so many, and none that dawdles.

use std::{sync::Arc, time::Duration};

use axum::{Router, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tower_service::Service;

use super::{
    Site,
    patience::Patient,
    router,
    written::{Reporting, Written},
};

/// The largest head of a request.
const MAX_HEAD: usize = 32 * 1024;
/// What a connection without a seat is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// How much one port takes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The most connections at a time.
    pub(crate) connections: usize,
    /// How long the head of a request may take, and how long a peer may take nothing of an answer.
    pub(crate) patience: Duration,
}

/// Serves a port until `stop`, as tasks of the daemon. `closed` is dropped when nobody listens there
/// any more.
pub(crate) fn serve(
    listener: TcpListener,
    site: Site,
    limits: Limits,
    tasks: &TaskTracker,
    stop: CancellationToken,
    closed: DropGuard,
) {
    let accept = accept(listener, site, limits, tasks.clone(), stop);
    tasks.spawn(async move {
        accept.await;
        drop(closed);
    });
}

async fn accept(
    listener: TcpListener,
    site: Site,
    limits: Limits,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let seats = Arc::new(Semaphore::new(limits.connections));
    // Made for the first who comes: the routes take a tenth of a megabyte, most agents are never looked
    // at, and there are many of them.
    let mut routes: Option<Router> = None;
    loop {
        // Cancel-safe: an accept that is dropped leaves the connection in the backlog.
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                // Out of descriptors: give those that end a moment.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else {
            if let Err(error) = stream.try_write(FULL) {
                tracing::debug!(%error, "an HTTP peer without a seat did not wait for the reason");
            }
            continue;
        };
        let router = routes.get_or_insert_with(|| router(site.clone()));
        let (router, stop) = (router.clone(), stop.clone());
        let written = Written::new(tasks.clone());
        tasks.spawn(async move {
            talk(stream, router, limits, written, stop).await;
            drop(seat);
        });
    }
}

async fn talk(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    written: Written,
    stop: CancellationToken,
) {
    let stream = Patient::new(stream, limits.patience);
    let io = TokioIo::new(Reporting::new(stream, written.clone()));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(written.clone());
        Service::call(&mut router.clone(), request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .max_buf_size(MAX_HEAD)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    // Cancel-safe: the connection is polled on after the signal.
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended badly");
    }
}
