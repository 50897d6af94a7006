//! Files that are there whole or not at all, whenever the process is killed.

use std::{
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

/// Writes `path` in one step: a reader sees the old content or the new one, also after a crash.
///
/// # Errors
/// Those of the file system; the old content is still there then.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    write_by(NamedTempFile::new_in(dir)?, path, content)
}

/// The same by way of a file in the same directory, whose name the caller chose: one that tells whose it
/// is, should the process be killed before it gets its own.
///
/// # Errors
/// Those of [`write()`].
pub fn write_by(mut file: NamedTempFile, path: &Path, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
