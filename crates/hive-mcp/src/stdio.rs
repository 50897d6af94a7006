//! Serving over standard input and output: one client, one process, one turn.

use hive_wire::text;
use rmcp::{
    ServiceExt,
    service::ServerInitializeError,
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{Options, handover::Reporting, hyperhive, server::Server, toolbox::Context};

/// Why serving ended badly.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The signals of this process cannot be watched.
    #[error("cannot watch for signals")]
    Signals(#[source] std::io::Error),
    /// The peer does not speak the Model Context Protocol.
    #[error("the client does not speak MCP as this server knows it: {0}")]
    Handshake(String),
    /// The service's task failed.
    #[error("the MCP service failed")]
    Failed(#[source] tokio::task::JoinError),
}

/// Serves `hyperhive` on standard input and output until the client goes away or this process is
/// told to stop by SIGTERM or SIGINT; then what is being written is finished.
///
/// A read of standard input may still be parked on a thread of its own when this returns: end the
/// process, or let the runtime go with `shutdown_background`.
///
/// # Errors
/// Any [`ServeError`].
pub async fn run(options: Options) -> Result<(), ServeError> {
    serve_stdio(hyperhive::server(&options)).await
}

/// Serves any server of ours on standard input and output, as [`run`] does.
///
/// # Errors
/// Any [`ServeError`].
pub async fn serve_stdio<C: Context>(server: Server<C>) -> Result<(), ServeError> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    let (read, write) = stdio_pipes();
    let serving = serve(server, read, write, stop.clone());
    tokio::pin!(serving);
    loop {
        // Both signal streams lose nothing when dropped, and `serving` is kept over the rounds.
        tokio::select! {
            ended = &mut serving => return ended,
            _ = terminate.recv() => stop.cancel(),
            _ = interrupt.recv() => stop.cancel(),
        }
    }
}

/// Serves one client on a pair of byte streams until it closes its side or `stop` is cancelled.
///
/// # Errors
/// [`ServeError::Handshake`] or [`ServeError::Failed`].
pub async fn serve<C, R, W>(
    server: Server<C>,
    read: R,
    write: W,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    C: Context,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(read, write);
    let transport = Reporting::new(transport, server.handovers());
    let running = match server.serve_with_ct(transport, stop).await {
        Ok(running) => running,
        // A client that looks and leaves is no failure, nor is being told to stop.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => {
            let why = text::shorten_middle(&error.to_string(), 300);
            return Err(ServeError::Handshake(why));
        }
    };
    running.waiting().await.map_err(ServeError::Failed)?;
    Ok(())
}
