//! The thread that brings SQLite up to what is durable, away from those who wait for an answer.

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use super::{StoreError, backlog::Backlog, behind::Behind, open::io_error};
use crate::pace;

/// SQLite may be so far behind, unless somebody wants to read; …
const SETTLE_AFTER: Duration = Duration::from_millis(20);
/// … and when it has no room on the disk, it is tried again after so long.
const SETTLE_AGAIN: Duration = Duration::from_secs(1);

/// The running thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Settler {
    behind: Arc<Behind>,
    thread: Option<JoinHandle<()>>,
}

impl Settler {
    /// Starts the thread. `on_failure` is called when it has ended because SQLite failed: the next
    /// group says how.
    pub(super) fn start(
        backlog: Arc<Backlog>,
        behind: Arc<Behind>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StoreError> {
        let settling = Arc::clone(&behind);
        let thread = std::thread::Builder::new()
            .name("settle".to_owned())
            .spawn(move || {
                pace::step_back();
                if let Err(error) = settle_when_due(&backlog, &settling) {
                    backlog.fail(error);
                    on_failure();
                }
            })
            .map_err(|source| io_error("the thread that settles".as_ref(), source))?;
        Ok(Self {
            behind,
            thread: Some(thread),
        })
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        self.behind.dismiss_settler();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread that settles panicked");
        }
    }
}

fn settle_when_due(backlog: &Backlog, behind: &Behind) -> Result<(), StoreError> {
    let mut patience = SETTLE_AFTER;
    while behind.wait_until_due(patience) {
        patience = SETTLE_AFTER;
        match backlog.settle().and_then(|()| backlog.sync(behind)) {
            Err(error) if error.is_passing() => {
                tracing::warn!(%error, "what was acknowledged is in the redo journal only");
                behind.has_no_room();
                patience = SETTLE_AGAIN;
            }
            other => other?,
        }
    }
    Ok(())
}
