//! Waiting to be stopped.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a command in order.
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// From now on the signals no longer end the process by themselves.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Returns at the first of them.
    pub(super) async fn wait(mut self) {
        // Receiving a signal is cancel-safe.
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
