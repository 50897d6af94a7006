//! Moving the log into the database file, away from the commit path.
//!
//! A thread of its own copies while the writer goes on. The log can only start over when nothing is
//! left to copy, which under load never happens by itself: so when the log is long and the thread
//! has nearly caught up, whoever commits copies the little rest before the next one. It never waits for
//! a reader: while one is at work the log grows.

use std::{
    path::Path,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::JoinHandle,
};

use rusqlite::Connection;

use super::{
    StoreError,
    guard::{Guard, SharedMark, checkpoint, lock},
    open::{io_error, keep_log_on_close},
};
use crate::pace;

const MIB: u64 = 1024 * 1024;
/// With so much left to copy the thread is woken.
const COPY_FROM: u64 = 8 * MIB;
/// From here on the log is to start over: just short of what is laid out beforehand.
const START_OVER_FROM: u64 = 31 * MIB;
/// How little the thread may have left for the writer to do the rest.
const SMALL_REST: u64 = MIB;
/// Here the writer copies whatever is left: the log must not grow for ever.
const TOO_LONG: u64 = 8 * START_OVER_FROM;

/// The thread with its wake-up call. Dropped, it is gone: nobody has the database open any more.
#[derive(Debug)]
pub(super) struct Checkpointer {
    running: Option<(SyncSender<()>, JoinHandle<()>)>,
    page_bytes: u64,
}

impl Checkpointer {
    pub(super) fn start(path: &Path, mark: SharedMark) -> Result<Self, StoreError> {
        let conn = Connection::open(path)?;
        keep_log_on_close(&conn, true)?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.pragma_update(None, "synchronous", "full")?;
        let page_bytes: u32 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || {
                pace::step_back();
                copy_when_woken(&conn, &woken, &mark);
            })
            .map_err(|source| io_error(path, source))?;
        Ok(Self {
            running: Some((wake, thread)),
            page_bytes: page_bytes.into(),
        })
    }

    /// Called by whoever commits, after it.
    pub(super) fn after_commit(&self, conn: &Connection, guard: &Guard) {
        let (frames, copied) = guard.frames();
        let length = u64::from(frames) * self.page_bytes;
        let rest = u64::from(frames.saturating_sub(copied)) * self.page_bytes;
        if (length >= START_OVER_FROM && rest <= SMALL_REST) || length >= TOO_LONG {
            copy(conn, &guard.shared_mark());
            return;
        }
        // Not after every commit: a copy ends in syncs of its own, on the disk that the writer
        // is waiting for.
        if rest < COPY_FROM && length < START_OVER_FROM {
            return;
        }
        let Some((wake, _)) = &self.running else {
            return;
        };
        match wake.try_send(()) {
            // Full: it is awake already and will see this commit too.
            Ok(()) | Err(TrySendError::Full(())) => {}
            Err(TrySendError::Disconnected(())) => {
                tracing::error!("the checkpoint thread is gone");
            }
        }
    }

    pub(super) fn stop(self) {
        drop(self);
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        let Some((wake, thread)) = self.running.take() else {
            return;
        };
        drop(wake);
        if thread.join().is_err() {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

fn copy_when_woken(conn: &Connection, woken: &Receiver<()>, mark: &SharedMark) {
    while woken.recv().is_ok() {
        copy(conn, mark);
    }
}

/// Copies what can be copied without waiting for anybody, and notes how far that came. When all of
/// it is copied and nobody reads from the log, the next commit starts it over.
fn copy(conn: &Connection, mark: &SharedMark) {
    let salts = lock(mark).salts();
    match checkpoint(conn, "PASSIVE") {
        Ok((_, seen, copied)) => lock(mark).copied(salts, seen, copied),
        // What is committed is safe in the log, which just grows meanwhile; a failing disk is
        // noticed by the next commit.
        Err(error) => tracing::warn!(%error, "a checkpoint failed"),
    }
}
