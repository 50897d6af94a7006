//! One harness per harness directory: two of them on one conversation would fork it, and one of
//! every two turns would be lost from it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, Write},
    path::Path,
};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// Why the directory is not ours.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another harness has it.
    #[error("another harness{} uses {dir}; stop it first, or set HIVE_HARNESS_DIR to a directory of this one's own", holder(.pid))]
    Taken {
        /// The directory.
        dir: String,
        /// Its process, when it has said.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {file}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// The lock; it goes when this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
}

impl InstanceLock {
    /// Takes the lock of a harness directory, which must exist.
    ///
    /// # Errors
    /// [`LockError::Taken`] when another process has it.
    pub fn take(dir: &Path) -> Result<Self, LockError> {
        let path = dir.join("hive.lock");
        let failed = |source: io::Error| LockError::Io {
            file: path.display().to_string(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Who has it is only for the message: not knowing changes nothing.
                let read = (&mut file).take(20).read_to_string(&mut text);
                let pid = read.ok().and_then(|_| text.trim().parse().ok());
                return Err(LockError::Taken {
                    dir: dir.display().to_string(),
                    pid,
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_harness_is_told_who_has_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = InstanceLock::take(dir.path()).unwrap();
        let error = InstanceLock::take(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("(process {})", std::process::id())),
            "{error}"
        );
        assert!(error.contains("HIVE_HARNESS_DIR"), "{error}");
        drop(first);
        InstanceLock::take(dir.path()).unwrap();
    }
}
