//! A body that is passed on and written down.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    http::response::Parts,
};

use crate::{
    mask,
    recording::{self, Entry, Recorder},
    server::{Room, body_value},
};

/// The most that is kept of an answer.
const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// An answer on its way through. However it ends, it is written down once: also when the client
/// leaves and this is dropped.
#[derive(Debug)]
pub(super) struct Tee {
    body: Incoming,
    kept: Vec<u8>,
    is_whole: bool,
    is_over: bool,
    /// What broke the answer, held back until hyper has passed on what came before it.
    error: Option<hyper::Error>,
    entry: Option<Entry>,
    recorder: Arc<Recorder>,
    _room: Room,
}

impl Tee {
    pub(super) fn new(
        body: Incoming,
        head: &Parts,
        entry: Entry,
        recorder: Arc<Recorder>,
        room: Room,
    ) -> Self {
        let response = recording::Response {
            status: head.status.as_u16(),
            headers: mask::headers(&head.headers),
            body: serde_json::Value::Null,
            is_complete: false,
        };
        Self {
            body,
            kept: Vec::new(),
            is_whole: true,
            is_over: false,
            error: None,
            entry: Some(Entry {
                response: Some(response),
                ..entry
            }),
            recorder,
            _room: room,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT_BYTES - self.kept.len();
        self.is_whole &= bytes.len() <= room;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn write_down(&mut self) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        if let Some(response) = &mut entry.response {
            let mut body = body_value(&self.kept);
            mask::json(&mut body);
            response.body = body;
            response.is_complete = self.is_over && self.is_whole;
        }
        self.recorder.write(&entry);
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        // A client may close as soon as it has the last byte.
        self.is_over |= self.body.is_end_stream();
        self.write_down();
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    self.keep(bytes);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.write_down();
                self.error = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                self.is_over = true;
                self.write_down();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
