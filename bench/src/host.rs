//! What a reader must know about the machine to place the figures: nothing that identifies it.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Host {
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) filesystem: String,
}

impl Host {
    /// The host, with the file system that holds `dir`.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            kernel: kernel.trim().to_owned(),
            filesystem: filesystem(&mounts, &dir).unwrap_or("unknown").to_owned(),
        })
    }

    /// Whether a sync there reaches no disk.
    pub(crate) fn volatile(&self) -> bool {
        matches!(self.filesystem.as_str(), "tmpfs" | "ramfs")
    }
}

/// Lets this process, and the servers that inherit it, hold as many files as the system allows.
pub(crate) fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")
}

/// The type of the innermost mount above `dir`.
fn filesystem<'a>(mountinfo: &'a str, dir: &Path) -> Option<&'a str> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let point = Path::new(mount.split(' ').nth(4)?);
            dir.starts_with(point)
                .then(|| (point.components().count(), kind.split(' ').next()))
        })
        .max_by_key(|(depth, _)| *depth)
        .and_then(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw\n\
                      31 22 0:26 / /dev rw shared:2 - devtmpfs udev rw\n";
        for (dir, want) in [
            ("/data", "ext4"),
            ("/dev/shm/x", "tmpfs"),
            ("/dev", "devtmpfs"),
        ] {
            assert_eq!(filesystem(mounts, Path::new(dir)), Some(want), "{dir}");
        }
    }
}
