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
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
