//! What is done once the answer to a call was written, and only then.
//!
//! A tool that takes something out of the hive may say so to the hive when the engine has it, not
//! before. It leaves a future with [`Handovers::once_written`]; the [`Reporting`] transport runs it
//! after the bytes of the answer were handed to the system. A future whose answer is never written
//! (the call was cancelled, the pipe is broken) is dropped without being run.
//!
//! Over HTTP each request has an answer of its own, so that whoever writes it brings a
//! [`Handovers`] in the extensions of the request and [takes them all](Handovers::take_all).

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
};
use std::{future::Future, sync::Arc};

use rmcp::{
    RoleServer,
    model::{JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// Something to do once an answer is written.
pub type Handover = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The handovers of the answers that are not written yet, by the request they answer.
#[derive(Default)]
pub struct Handovers {
    waiting: Mutex<HashMap<RequestId, Handover>>,
}

impl Handovers {
    /// Runs `handover` once the answer to `request` was written.
    pub fn once_written(
        &self,
        request: RequestId,
        handover: impl Future<Output = ()> + Send + 'static,
    ) {
        let earlier = self.lock().insert(request, Box::pin(handover));
        drop(earlier);
    }

    /// Every handover that waits: for a transport that has written all their answers.
    pub fn take_all(&self) -> Vec<Handover> {
        self.lock().drain().map(|(_, handover)| handover).collect()
    }

    /// Drops the handover of a request whose answer will not be written.
    pub fn forget(&self, request: &RequestId) {
        drop(self.take(request));
    }

    fn take(&self, request: &RequestId) -> Option<Handover> {
        self.lock().remove(request)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Handover>> {
        // Every change is a single call on the map: a panic elsewhere leaves it whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transport that runs the handover of an answer after it was written.
pub(crate) struct Reporting<T> {
    inner: T,
    handovers: Arc<Handovers>,
}

impl<T> Reporting<T> {
    pub(crate) fn new(inner: T, handovers: Arc<Handovers>) -> Self {
        Self { inner, handovers }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Reporting<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let handover = match &message {
            JsonRpcMessage::Response(response) => self.handovers.take(&response.id),
            _ => None,
        };
        // The transport below writes the line whole and flushes it.
        let written = self.inner.send(message);
        async move {
            written.await?;
            if let Some(handover) = handover {
                handover.await;
            }
            Ok(())
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
