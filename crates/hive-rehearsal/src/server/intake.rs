//! Reading bodies within bounds: each, and all that are in memory at once.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest body that is read.
const MAX_BODY_BYTES: usize = 40 * 1024 * 1024;

/// All bodies at once, in KiB.
const BUDGET_KIB: u32 = 256 * 1024;

/// Reads bodies; more than fit into memory wait.
#[derive(Debug)]
pub(crate) struct Intake(Arc<Semaphore>);

/// The memory that a body takes, until dropped.
pub(crate) type Room = Option<OwnedSemaphorePermit>;

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    TooLarge,
    Gone,
}

impl Default for Intake {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET_KIB as usize)))
    }
}

impl Intake {
    /// Reads a body when there is room for it.
    pub(crate) async fn read(&self, body: Incoming) -> Result<(Bytes, Room), Unread> {
        let bytes = body.size_hint().upper().unwrap_or(MAX_BODY_BYTES as u64);
        let kib = bytes.min(MAX_BODY_BYTES as u64) / 1024 + 1;
        let kib = u32::try_from(kib).unwrap_or(BUDGET_KIB);
        // The budget is never closed, so there always is a permit.
        let room = Arc::clone(&self.0).acquire_many_owned(kib).await.ok();
        match Limited::new(body, MAX_BODY_BYTES).collect().await {
            Ok(collected) => Ok((collected.to_bytes(), room)),
            Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
            Err(_) => Err(Unread::Gone),
        }
    }
}

/// A body as it is written down: JSON, or else a text.
pub(crate) fn body_value(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}
