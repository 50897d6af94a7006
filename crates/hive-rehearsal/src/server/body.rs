//! The body of an answer: pieces with pauses, and how it ends.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::socket::Connection;

/// A piece, and the time before it.
#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub(crate) wait: Duration,
    pub(crate) bytes: Bytes,
}

/// How a body ends.
#[derive(Debug)]
pub(crate) enum End {
    /// In order.
    Finish,
    /// The connection is closed before the body is complete.
    Cut,
    /// The connection is reset.
    Reset(Connection),
    /// Never: nothing more comes.
    Stall,
}

/// The connection ends here, on purpose.
#[derive(Debug)]
pub(crate) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection was cut on purpose")
    }
}

impl std::error::Error for Cut {}

/// A body that plays its beats.
#[derive(Debug)]
pub(crate) struct Playback {
    beats: VecDeque<Beat>,
    pause: Option<Pin<Box<Sleep>>>,
    end: End,
    /// Whether hyper had a chance to write what came before a cut.
    is_flushed: bool,
}

impl Playback {
    pub(crate) fn new(beats: impl IntoIterator<Item = Beat>, end: End) -> Self {
        Self {
            beats: beats.into_iter().collect(),
            pause: None,
            end,
            is_flushed: false,
        }
    }

    /// A body in one piece.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let beat = Beat {
            wait: Duration::ZERO,
            bytes,
        };
        Self::new([beat], End::Finish)
    }
}

impl Body for Playback {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(pause) = self.pause.as_mut() {
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        } else if let Some(wait) = self.beats.front().map(|beat| beat.wait)
            && !wait.is_zero()
        {
            let mut pause = Box::pin(tokio::time::sleep(wait));
            if pause.as_mut().poll(context).is_pending() {
                self.pause = Some(pause);
                return Poll::Pending;
            }
        }
        if let Some(beat) = self.beats.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(beat.bytes))));
        }
        match &self.end {
            End::Finish => Poll::Ready(None),
            // Whoever drops the connection drops this.
            End::Stall => Poll::Pending,
            End::Cut | End::Reset(_) if !self.is_flushed => {
                self.is_flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            End::Cut => Poll::Ready(Some(Err(Cut))),
            End::Reset(connection) => {
                connection.reset_at_end();
                Poll::Ready(Some(Err(Cut)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.beats.is_empty() && matches!(self.end, End::Finish)
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if let (End::Finish, Some(beat), true) =
            (&self.end, self.beats.front(), self.beats.len() == 1)
        {
            hint.set_exact(beat.bytes.len() as u64);
        }
        hint
    }
}
