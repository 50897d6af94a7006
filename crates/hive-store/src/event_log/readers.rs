//! The connections that pages are read from.

use std::{
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::Connection;

use super::{EventLogError, file};

/// A fixed number of connections that readers take turns with.
#[derive(Debug)]
pub(super) struct Readers {
    idle: Mutex<Option<Vec<Connection>>>,
    returned: Condvar,
}

impl Readers {
    /// Opens `count` connections to a file that is open already. They stay with that file even if
    /// its name is taken away.
    pub(super) fn open(path: &Path, count: usize, busy: Duration) -> Result<Self, EventLogError> {
        let connections = (0..count)
            .map(|_| open_reader(path, busy))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            idle: Mutex::new(Some(connections)),
            returned: Condvar::new(),
        })
    }

    /// Runs `work` on a connection, after waiting for one.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, EventLogError> {
        let mut idle = self.lock();
        let mut connection = loop {
            match idle.as_mut().map(Vec::pop) {
                None => return Err(EventLogError::Closed),
                Some(Some(connection)) => break connection,
                Some(None) => {
                    idle = self
                        .returned
                        .wait(idle)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(idle);
        let result = work(&mut connection);
        if let Some(idle) = self.lock().as_mut() {
            idle.push(connection);
        }
        self.returned.notify_one();
        result.map_err(EventLogError::Storage)
    }

    /// Closes the connections; further reads are refused.
    pub(super) fn close(&self) {
        let connections = self.lock().take();
        self.returned.notify_all();
        drop(connections);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A further connection to a file that is open already, for reading only.
fn open_reader(path: &Path, busy: Duration) -> Result<Connection, EventLogError> {
    let connect = || {
        let connection = file::connect(path, busy)?;
        connection.pragma_update(None, "query_only", true)?;
        // The first read opens the WAL too: from here on this connection needs no path.
        connection.query_row("SELECT epoch FROM log", [], |_| Ok(()))?;
        Ok(connection)
    };
    connect().map_err(|error: rusqlite::Error| EventLogError::open(path, error))
}
