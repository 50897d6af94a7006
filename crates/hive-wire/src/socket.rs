//! Unix socket paths, which the kernel limits to 107 bytes.
//!
//! A hive whose root lies deep keeps its sockets in a short private directory and leaves a symlink
//! at the long path. Whoever connects follows the link first.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::net::UnixStream;

/// The longest path that fits into a socket address.
pub const MAX_SOCKET_PATH: usize = 107;

/// Whether a socket can be bound or reached at this very path.
pub fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_SOCKET_PATH
}

/// The path to hand to the kernel for a socket that users know as `path`.
///
/// # Errors
/// When the path is too long and does not lead, through symlinks, to a shorter one.
pub fn reachable(path: &Path) -> io::Result<PathBuf> {
    if fits(path) {
        return Ok(path.to_path_buf());
    }
    let real = path.canonicalize()?;
    if fits(&real) {
        return Ok(real);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "the socket path {} has {} bytes, and the kernel takes at most {MAX_SOCKET_PATH}",
            real.display(),
            real.as_os_str().len()
        ),
    ))
}

/// Connects to the socket that users know as `path`.
///
/// # Errors
/// Those of [`reachable`], and those of connecting.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(reachable(path)?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_followed_to_a_short_one() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(60)).join("e".repeat(60));
        std::fs::create_dir_all(&deep).unwrap();
        let short = dir.path().join("s");
        std::fs::create_dir(&short).unwrap();
        std::fs::write(short.join("host.sock"), "").unwrap();
        std::os::unix::fs::symlink(&short, deep.join("run")).unwrap();

        let known_as = deep.join("run/host.sock");
        assert!(!fits(&known_as));
        let real = short.join("host.sock").canonicalize().unwrap();
        assert_eq!(reachable(&known_as).unwrap(), real);
    }

    #[test]
    fn a_path_that_stays_long_is_refused_with_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(60)).join("e".repeat(60));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("s"), "").unwrap();
        let error = reachable(&deep.join("s")).unwrap_err().to_string();
        assert!(error.contains("at most 107"), "{error}");
    }
}
