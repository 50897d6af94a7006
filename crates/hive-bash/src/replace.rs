//! Files that are replaced whole, and what a kill in between leaves of them.
//!
//! A new content is written beside the file and then takes its name. Such a file bears a name of
//! the daemon's own, so that the next daemon can tell what is left over, also in a directory that
//! others write to.

use std::{fs, io, path::Path};

use hive_mcp::whole_file;
use tempfile::{Builder, NamedTempFile};

/// How the names of files begin that are not finished.
const PREFIX: &str = ".hive-bash-";

/// A file in `dir` that goes away unless it gets another name.
pub(crate) fn unfinished(dir: &Path) -> io::Result<NamedTempFile> {
    Builder::new().prefix(PREFIX).tempfile_in(dir)
}

/// Writes `path` in one step: a reader sees the old content or the new one, also after a crash.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = unfinished(path.parent().unwrap_or(Path::new(".")))?;
    whole_file::write_by(file, path, content)
}

/// Removes what a daemon that was killed did not finish in `dir`. Only for whoever holds the lock:
/// what another daemon writes just now looks the same.
pub(crate) fn remove_leftovers(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
            && entry.file_type()?.is_file()
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_finished_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("1.json"), b"{}").unwrap();
        let (_, left) = unfinished(dir.path()).unwrap().keep().unwrap();
        let another = dir.path().join(".tmpAbCdEf");
        fs::write(&another, "of somebody else").unwrap();
        remove_leftovers(dir.path()).unwrap();
        assert!(!left.exists());
        assert!(another.exists());
        assert_eq!(fs::read(dir.path().join("1.json")).unwrap(), b"{}");
        remove_leftovers(&dir.path().join("none")).unwrap();
    }
}
