//! Putting a damaged file out of the way, for whoever wants to look at it.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use hive_wire::Timestamp;

/// Renames the file, and its WAL with it, to a name that is free.
pub(super) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let seconds = Timestamp::now().millis() / 1000;
    let aside = (0..1000)
        .map(|attempt| match attempt {
            0 => with_suffix(path, &format!(".damaged-{seconds}")),
            _ => with_suffix(path, &format!(".damaged-{seconds}.{attempt}")),
        })
        .find(|aside| !aside.exists())
        .ok_or_else(|| io::Error::other("too many damaged files lie beside it"))?;
    fs::rename(path, &aside)?;
    for suffix in ["-wal", "-shm"] {
        match fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

/// The path with more at the end of its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
