//! Where one server lives: a directory on the disk under test, a short one for its sockets, and
//! whether its syncs are counted.
//!
//! Counting starts the server under strace with a seccomp filter rather than attaching to it: an
//! attached tracer stops the server at every system call and so changes how commits group, while
//! the filter stops it at the counted ones alone.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// Every call that asks the kernel to make file data durable. A `pwritev2` here is one that syncs:
/// no peer has another use for it.
const SYNCS: &str = "fdatasync,fsync,sync_file_range,msync,syncfs,pwritev2";

#[derive(Debug)]
pub(crate) struct Site {
    dir: PathBuf,
    sockets: TempDir,
    traced: bool,
}

impl Site {
    pub(crate) fn new(base: &Path, name: &str) -> Result<Self> {
        let dir = base.join(name);
        fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        // A socket's address is short whatever the checkout's path: sockets do not touch the disk.
        let sockets = tempfile::Builder::new()
            .prefix("hb")
            .permissions(Permissions::from_mode(0o755))
            .tempdir()?;
        Ok(Self {
            dir,
            sockets,
            traced: false,
        })
    }

    pub(crate) fn traced(base: &Path, name: &str) -> Result<Self> {
        let mut site = Self::new(base, name)?;
        site.traced = true;
        Ok(site)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn sockets(&self) -> &Path {
        self.sockets.path()
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// A command for this site's server.
    pub(crate) fn command(&self, program: &Path) -> Command {
        if !self.traced {
            return Command::new(program);
        }
        let mut command = Command::new("strace");
        command
            .args([
                "-D",
                "-f",
                "--seccomp-bpf",
                "-qq",
                "-e",
                "signal=none",
                "-e",
            ])
            .arg(format!("trace={SYNCS}"))
            .arg("-o")
            .arg(self.trace())
            .arg(program);
        command
    }

    /// How many syncs the traced server has made so far.
    pub(crate) fn syncs(&self) -> Result<usize> {
        let trace = fs::read_to_string(self.trace()).context("no trace: does strace work here?")?;
        Ok(count_calls(&trace))
    }

    fn trace(&self) -> PathBuf {
        self.dir.join("syncs.log")
    }
}

/// Calls in an strace log; a call that was interrupted by another thread's takes two lines.
fn count_calls(trace: &str) -> usize {
    trace
        .lines()
        .filter(|line| line.contains('(') && !line.contains(" resumed>"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_call_counts_once() {
        let trace = "10 fdatasync(7 <unfinished ...>\n\
                     11 fsync(3) = 0\n\
                     10 <... fdatasync resumed>) = 0\n\
                     12 +++ exited with 0 +++\n";
        assert_eq!(count_calls(trace), 2);
    }
}
