//! One daemon per root: a lock that the kernel drops with its holder.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use thiserror::Error;

/// Why the lock was not to be had.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process has it.
    #[error("another daemon already runs on this root{}", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        /// Its pid, as it wrote it down.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The lock on a root, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct RootLock {
    _file: File,
}

impl RootLock {
    /// Takes the lock and writes down who has it.
    ///
    /// # Errors
    /// [`LockError::Held`] with the holder's pid, or why the file cannot be used.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.display().to_string(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The pid is a courtesy: without it the refusal still stands.
                let pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.trim().parse().ok());
                return Err(LockError::Held { pid });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        file.set_len(0).map_err(io)?;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_the_pid_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hive.lock");
        let first = RootLock::acquire(&path).unwrap();
        let refused = RootLock::acquire(&path).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(&std::process::id().to_string()),
            "{refused}"
        );
        drop(first);
        RootLock::acquire(&path).unwrap();
    }
}
