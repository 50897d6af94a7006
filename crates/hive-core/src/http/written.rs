//! Work that waits until an answer has left this process.
//!
//! The end of a body is when its last bytes are handed to the connection, not when they are
//! written. So a body that ends ([`Told`]) leaves its work with the connection ([`Written`]), which
//! begins it after the next flush that succeeds ([`Reporting`]). A connection that breaks before
//! drops it.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use hive_mcp::handover::{Handover, Handovers};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::task::TaskTracker;

/// What waits for the next flush of a connection.
#[derive(Clone)]
pub(super) struct Written {
    tasks: TaskTracker,
    waiting: Arc<Mutex<Vec<Handover>>>,
}

impl Written {
    /// A connection on which nothing waits; what comes is run by `tasks`.
    pub(super) fn new(tasks: TaskTracker) -> Self {
        Self {
            tasks,
            waiting: Arc::default(),
        }
    }

    fn after_flush(&self, handovers: Vec<Handover>) {
        self.lock().extend(handovers);
    }

    fn flushed(&self) {
        for handover in std::mem::take(&mut *self.lock()) {
            self.tasks.spawn(handover);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Handover>> {
        // Every change is a single call: a panic elsewhere leaves the list whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that says when everything was written.
pub(super) struct Reporting<S> {
    inner: S,
    written: Written,
}

impl<S> Reporting<S> {
    pub(super) fn new(inner: S, written: Written) -> Self {
        Self { inner, written }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Reporting<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Reporting<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The library above flushes only once its own buffer is empty.
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.written.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// A body whose end is told to its connection.
pub(super) struct Told {
    inner: Body,
    /// Gone once the end was told.
    end: Option<(Arc<Handovers>, Written)>,
}

impl Told {
    /// `inner`, whose end sets `handovers` free.
    pub(super) fn new(inner: Body, handovers: Arc<Handovers>, written: Written) -> Self {
        Self {
            inner,
            end: Some((handovers, written)),
        }
    }
}

impl HttpBody for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        let is_last = match &frame {
            None => true,
            Some(Ok(_)) => self.inner.is_end_stream(),
            Some(Err(_)) => false,
        };
        if is_last && let Some((handovers, written)) = self.end.take() {
            written.after_flush(handovers.take_all());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
