//! Opening and writing files at a place that was resolved and permitted.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat, openat2, renameat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::tool::ToolError;

/// What a file looked like when the model last saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified_ns: i64,
    inode: u64,
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            size: meta.len(),
            modified_ns: meta
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(meta.mtime_nsec()),
            inode: meta.ino(),
        })
    }
}

/// How many files are remembered from one turn to the next.
const MAX_KEPT: usize = 1_000;

/// Which files the model has seen, and in which state.
#[derive(Debug, Default)]
pub struct Ledger {
    seen: Mutex<BTreeMap<PathBuf, Stamp>>,
}

impl Ledger {
    /// A ledger with what earlier turns saw.
    pub fn new(seen: BTreeMap<PathBuf, Stamp>) -> Self {
        Self {
            seen: Mutex::new(seen),
        }
    }

    /// All of it, to be written down; a part of it when it is very much.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Stamp> {
        let seen = self.lock();
        seen.iter()
            .take(MAX_KEPT)
            .map(|(path, stamp)| (path.clone(), *stamp))
            .collect()
    }

    /// Notes that the model has seen `file` at `path`.
    pub fn note(&self, path: &Path, file: &File) -> io::Result<()> {
        let stamp = Stamp::of(file)?;
        self.lock().insert(path.to_owned(), stamp);
        Ok(())
    }

    /// Whether the model may overwrite what is at `path` now.
    fn check(&self, path: &Path, file: &File) -> Result<(), ToolError> {
        let now = Stamp::of(file).map_err(|error| failed(path, &error))?;
        match self.lock().get(path) {
            None => Err(ToolError::tell(
                "File has not been read yet. Read it first before writing to it.",
            )),
            Some(seen) if *seen != now => Err(ToolError::tell(
                "File has been modified since read, either by the user or by a linter. Read it \
                 again before attempting to write it.",
            )),
            Some(_) => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Stamp>> {
        // The map is whole after every operation, so a panic elsewhere does not spoil it.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a regular file for reading. Links, devices, sockets and pipes are refused, and none of
/// them can make this wait.
pub fn open(real: &Path) -> Result<File, ToolError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open_at(real, flags).map_err(|error| match error {
        Errno::NOENT | Errno::NOTDIR => ToolError::tell("File does not exist."),
        Errno::LOOP | Errno::XDEV => ToolError::tell(format!(
            "{} changed while it was being opened (a symbolic link appeared).",
            real.display()
        )),
        error => failed(real, &error.into()),
    })?);
    let meta = file.metadata().map_err(|error| failed(real, &error))?;
    if meta.is_dir() {
        return Err(ToolError::tell(format!(
            "EISDIR: illegal operation on a directory, read '{}'",
            real.display()
        )));
    }
    if !meta.is_file() {
        return Err(ToolError::tell(format!(
            "{} is not a regular file (a device, pipe or socket): it cannot be read with this tool.",
            real.display()
        )));
    }
    Ok(file)
}

fn open_at(real: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, real, flags, Mode::empty(), resolve) {
        // An old kernel, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            openat(CWD, real, flags | OFlags::NOFOLLOW, Mode::empty())
        }
        result => result,
    }
}

/// What was there before a write.
#[derive(Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    Nothing,
    /// A file that the model had seen.
    Seen,
}

/// Replaces or creates a file in one step: whoever reads it sees the old text or the new one. A
/// file that the model has not seen in its present state is left alone.
pub fn write(real: &Path, content: &[u8], ledger: &Ledger) -> Result<Before, ToolError> {
    let parent = real
        .parent()
        .ok_or_else(|| ToolError::tell("This path has no directory."))?;
    let name = real
        .file_name()
        .ok_or_else(|| ToolError::tell("This path names no file."))?;
    std::fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = open_at(parent, flags).map_err(|error| failed(parent, &error.into()))?;

    let old = match open(real) {
        Ok(file) => Some(file),
        Err(_) if matches!(std::fs::symlink_metadata(real), Err(ref e) if e.kind() == io::ErrorKind::NotFound) => {
            None
        }
        Err(error) => return Err(error),
    };
    if let Some(old) = &old {
        ledger.check(real, old)?;
    }
    let temporary = format!(".hive-{}.tmp", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = openat(&dir, temporary.as_str(), flags, mode)
        .map_err(|error| failed(real, &error.into()))?;
    let mut file = File::from(file);
    let written = (|| {
        if let Some(old) = &old {
            file.set_permissions(old.metadata()?.permissions())?;
        }
        file.write_all(content)?;
        renameat(&dir, temporary.as_str(), &dir, name)?;
        Ok(())
    })();
    if let Err(error) = written {
        // Nothing more can be done about a left-over file than to try.
        unlinkat(&dir, temporary.as_str(), AtFlags::empty()).ok();
        return Err(failed(real, &error));
    }
    ledger
        .note(real, &file)
        .map_err(|error| failed(real, &error))?;
    Ok(if old.is_some() {
        Before::Seen
    } else {
        Before::Nothing
    })
}

/// A disk error in words for the model.
pub fn failed(path: &Path, error: &io::Error) -> ToolError {
    ToolError::tell(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    #[test]
    fn a_file_that_changed_is_not_clobbered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("a");
        let ledger = Ledger::default();
        assert_eq!(write(&path, b"one", &ledger).unwrap(), Before::Nothing);
        assert_eq!(write(&path, b"two", &ledger).unwrap(), Before::Seen);
        fs::write(&path, b"someone else's").unwrap();
        let error = write(&path, b"three", &ledger).unwrap_err().to_string();
        assert!(error.contains("modified since read"), "{error}");
        let fresh = Ledger::default();
        let error = write(&path, b"three", &fresh).unwrap_err().to_string();
        assert!(error.contains("not been read"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"someone else's");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no left-overs"
        );
    }

    #[test]
    fn permissions_survive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("run.sh");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let ledger = Ledger::default();
        ledger.note(&path, &open(&path).unwrap()).unwrap();
        write(&path, b"y", &ledger).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o750
        );
    }

    #[test]
    fn a_link_that_appears_after_the_check_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("secret")).unwrap();
        fs::write(root.join("secret/key"), "k").unwrap();
        symlink(root.join("secret"), root.join("swapped")).unwrap();
        symlink(root.join("secret/key"), root.join("key")).unwrap();
        // The place was resolved to these paths before they became links.
        assert!(open(&root.join("swapped/key")).is_err());
        assert!(open(&root.join("key")).is_err());
        assert!(write(&root.join("swapped/new"), b"x", &Ledger::default()).is_err());
        assert!(write(&root.join("key"), b"x", &Ledger::default()).is_err());
        assert_eq!(fs::read(root.join("secret/key")).unwrap(), b"k");
    }

    #[test]
    fn a_hard_link_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("host"), "host").unwrap();
        fs::hard_link(root.join("host"), root.join("mine")).unwrap();
        let ledger = Ledger::default();
        let mine = root.join("mine");
        ledger.note(&mine, &open(&mine).unwrap()).unwrap();
        write(&mine, b"changed", &ledger).unwrap();
        assert_eq!(fs::read(root.join("host")).unwrap(), b"host");
    }

    #[test]
    fn pipes_and_devices_neither_block_nor_open() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let pipe = root.join("pipe");
        rustix::fs::mknodat(
            CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(
            open(&pipe)
                .unwrap_err()
                .to_string()
                .contains("not a regular file")
        );
        assert!(open(Path::new("/dev/zero")).is_err());
        assert!(open(&root).unwrap_err().to_string().contains("directory"));
    }
}
