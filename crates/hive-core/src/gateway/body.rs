//! Bodies on their way through: passed on as they come, measured, and given up when they stall.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep};

/// The body of any answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Cut>;

/// How long each part of an exchange may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// The head of a request, once its connection is there.
    pub(crate) head: Duration,
    /// The next piece of a request.
    pub(crate) request: Duration,
    /// The head of an answer.
    pub(crate) answer: Duration,
    /// The next piece of an answer, or of a tunnel.
    pub(crate) silence: Duration,
    /// The addresses of a name.
    pub(crate) resolving: Duration,
    /// How long the peer may take nothing of what is sent to it.
    pub(crate) taking: Duration,
}

/// Why a body ends before its end.
#[derive(Debug, Error)]
pub(crate) enum Cut {
    #[error("the body is longer than {0} bytes")]
    TooLong(u64),
    #[error("nothing came for too long")]
    Silent,
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// A body of known text.
pub(crate) fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A request's body: at most so long, and never silent for long.
pub(crate) struct Sent {
    body: Incoming,
    passed: Arc<AtomicU64>,
    limit: u64,
    silence: Silence,
}

impl Sent {
    pub(crate) fn new(body: Incoming, limit: u64, patience: Duration) -> Self {
        Self {
            body,
            passed: Arc::default(),
            limit,
            silence: Silence::new(patience),
        }
    }

    /// How many bytes of it have passed, for who wants to know later.
    pub(crate) fn passed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.passed)
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let frame = ready!({
            let frame = Pin::new(&mut self.body).poll_frame(context);
            self.silence.check(context, frame)
        });
        let frame = match frame {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        let passed = self.passed.fetch_add(length, Ordering::Relaxed);
        if passed.saturating_add(length) > self.limit {
            return Poll::Ready(Some(Err(Cut::TooLong(self.limit))));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer that nobody listens to.
pub(crate) fn passing(body: Incoming, patience: Duration) -> Body {
    Heard::new(body, (), patience).boxed_unsync()
}

/// Whoever listens to an answer that passes.
pub(super) trait Listener: Send + Unpin + 'static {
    /// A piece of it.
    fn hear(&mut self, bytes: &[u8]);
}

/// An answer's body, with somebody who listens. The listener is dropped with it, however it ends.
pub(super) struct Heard<L> {
    body: Incoming,
    listener: L,
    silence: Silence,
}

impl<L: Listener> Heard<L> {
    pub(super) fn new(body: Incoming, listener: L, patience: Duration) -> Self {
        Self {
            body,
            listener,
            silence: Silence::new(patience),
        }
    }
}

impl<L: Listener> HttpBody for Heard<L> {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let frame = ready!(self.silence.check(context, frame));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.listener.hear(data);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Nobody listens.
impl Listener for () {
    fn hear(&mut self, _: &[u8]) {}
}

/// A clock that runs while nothing comes.
struct Silence {
    patience: Duration,
    clock: Pin<Box<Sleep>>,
    is_running: bool,
}

impl Silence {
    fn new(patience: Duration) -> Self {
        Self {
            patience,
            clock: Box::pin(sleep(Duration::ZERO)),
            is_running: false,
        }
    }

    /// Passes on what came, or gives up.
    fn check(
        &mut self,
        context: &mut Context<'_>,
        frame: Poll<Option<Result<Frame<Bytes>, hyper::Error>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Poll::Ready(frame) = frame {
            self.is_running = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(Cut::Broken)));
        }
        if !self.is_running {
            self.is_running = true;
            self.clock.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.clock.as_mut().poll(context));
        Poll::Ready(Some(Err(Cut::Silent)))
    }
}
