//! What can go wrong with the log: one variant per different reaction.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Why the log cannot do something.
#[derive(Debug, Error)]
pub enum EventLogError {
    /// The place where the file lies does not work.
    #[error(
        "the event log at {} cannot be opened; check that its directory exists, belongs to this \
         user, can be written and has space left", path.display()
    )]
    Open {
        /// Where the file lies.
        path: PathBuf,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The writer thread could not start.
    #[error("the event log's thread cannot be started")]
    Thread(#[source] io::Error),
    /// SQLite failed.
    #[error("the event log cannot be read or written")]
    Storage(#[source] rusqlite::Error),
    /// The log ended while it could not write; the next start shows a gap.
    #[error("the event log ended with {events} events unwritten")]
    Unwritten {
        /// How many.
        events: u64,
    },
    /// The log is closed.
    #[error("the event log is closed")]
    Closed,
    /// The writer thread panicked; the next start shows a gap.
    #[error("the event log's thread failed; this is a bug")]
    Panicked,
}

impl EventLogError {
    pub(super) fn open(
        path: &Path,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Open {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}
