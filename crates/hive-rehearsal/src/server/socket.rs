//! A connection that can be reset.
//!
//! HTTP is hyper's business; what hyper cannot do is end a connection with a reset. So it writes
//! to a [`Line`], and when the connection is marked as cut the socket is closed with unsent data
//! thrown away, which the peer sees as a reset.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The connection that a request came by, as its handler sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection(Arc<AtomicBool>);

impl Connection {
    /// From now on the connection ends with a reset.
    pub(crate) fn reset_at_end(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_reset(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The bytes of a connection.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    connection: Connection,
}

impl Line {
    pub(crate) fn new(stream: TcpStream, connection: Connection) -> Self {
        // Events must leave as they are written; a socket that cannot do it is only slower.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot switch off delayed sending");
        }
        Self { stream, connection }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.connection.is_reset()
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "cannot reset a connection");
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // An orderly end would come before the reset and hide it.
        if self.connection.is_reset() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
