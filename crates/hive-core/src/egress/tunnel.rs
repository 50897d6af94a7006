//! A tunnel: bytes both ways, until both ends have said their last, or neither says anything.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::{Request, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional},
    net::TcpStream,
    time::sleep,
};

/// Runs a tunnel once the peer has seen that it is open.
pub(super) async fn run(request: Request<Incoming>, outside: TcpStream, silence: Duration) {
    let inside = match hyper::upgrade::on(request).await {
        Ok(inside) => inside,
        Err(error) => {
            tracing::debug!(%error, "a tunnel was not taken");
            return;
        }
    };
    let heard = Arc::new(AtomicU64::new(0));
    let mut inside = Heard {
        stream: TokioIo::new(inside),
        heard: Arc::clone(&heard),
    };
    let mut outside = Heard {
        stream: outside,
        heard: Arc::clone(&heard),
    };
    // Cancel-safe: a tunnel that is silent is given up whole.
    let ended = tokio::select! {
        ended = copy_bidirectional(&mut inside, &mut outside) => ended,
        () = falls_silent(&heard, silence) => Err(io::ErrorKind::TimedOut.into()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a tunnel ended badly");
    }
}

/// Waits until nothing was heard for as long as `silence`, give or take as much again.
async fn falls_silent(heard: &AtomicU64, silence: Duration) {
    let mut before = heard.load(Ordering::Relaxed);
    loop {
        sleep(silence).await;
        let now = heard.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

/// A stream that counts what is read from it.
struct Heard<S> {
    stream: S,
    heard: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.heard.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
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
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
