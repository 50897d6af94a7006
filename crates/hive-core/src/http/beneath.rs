//! Files of an agent's directories, read without ever leaving them.
//!
//! The agent owns these directories and may put anything there: links to other places, pipes,
//! files that grow. A path is opened one name at a time, each from the directory before it and
//! never through a link, so that nothing can be swapped in between.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::fs::{self, CWD, FileType, Mode, OFlags};

/// The deepest path.
const MAX_DEPTH: usize = 32;
/// The most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_dir: bool,
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    Directory(Vec<Entry>),
    File(Plain),
}

/// An ordinary file.
#[derive(Debug)]
pub(super) struct Plain {
    file: File,
    pub(super) size: u64,
}

impl Plain {
    /// Reads at most `max` bytes from this place on.
    pub(super) fn read(&mut self, from: u64, max: usize) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        let max = u64::try_from(max).unwrap_or(u64::MAX);
        (&mut self.file).take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Opens what lies at `path` beneath `root`.
///
/// # Errors
/// `NotFound` also for what is no file of the agent's: links, pipes, files with other names
/// elsewhere.
pub(super) fn open(root: &Path, path: &str) -> io::Result<Found> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    if names.len() > MAX_DEPTH
        || names.iter().any(|name| matches!(*name, "." | ".."))
        || path.contains('\0')
    {
        return Err(io::ErrorKind::NotFound.into());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut here = fs::openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty())?;
    for (place, name) in names.iter().enumerate() {
        let is_last = place + 1 == names.len();
        let kind = if is_last {
            flags
        } else {
            flags | OFlags::DIRECTORY
        };
        here = fs::openat(&here, *name, kind, Mode::empty()).map_err(|error| {
            // A link, or a file where a directory should be.
            let is_odd = matches!(
                error,
                rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR | rustix::io::Errno::NXIO
            );
            if is_odd {
                io::ErrorKind::NotFound.into()
            } else {
                io::Error::from(error)
            }
        })?;
    }
    found(here)
}

fn found(here: OwnedFd) -> io::Result<Found> {
    let about = fs::fstat(&here)?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => Ok(Found::Directory(list(&here)?)),
        // A second name of it may be a file of somebody else's.
        FileType::RegularFile if about.st_nlink == 1 => Ok(Found::File(Plain {
            size: u64::try_from(about.st_size).unwrap_or(0),
            file: here.into(),
        })),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn list(here: &OwnedFd) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::Dir::read_from(here)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if matches!(name, "." | "..") {
            continue;
        }
        let Ok(about) = fs::statat(here, name, fs::AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = FileType::from_raw_mode(about.st_mode);
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            continue;
        }
        entries.push(Entry {
            name: name.to_owned(),
            is_dir: kind == FileType::Directory,
            size: u64::try_from(about.st_size).unwrap_or(0),
            modified: about.st_mtime,
        });
    }
    entries.sort_by(|a, b| (!a.is_dir, &a.name).cmp(&(!b.is_dir, &b.name)));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_outside_is_reached() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("state");
        std::fs::create_dir_all(root.join("notes")).unwrap();
        std::fs::write(dir.path().join("secret"), "key").unwrap();
        std::fs::write(root.join("notes/a.md"), "hello").unwrap();
        symlink("../secret", root.join("link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("/etc", root.join("notes/etc")).unwrap();
        std::fs::hard_link(dir.path().join("secret"), root.join("hard")).unwrap();
        fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();

        for path in [
            "link",
            "up/secret",
            "../secret",
            "notes/../../secret",
            "notes/etc/passwd",
            "hard",
            "pipe",
            "nothing",
            "notes/a.md/x",
            "a\0b",
        ] {
            assert_eq!(
                open(&root, path).err().map(|error| error.kind()),
                Some(io::ErrorKind::NotFound),
                "{path}"
            );
        }
        let Ok(Found::File(mut file)) = open(&root, "/notes//a.md") else {
            panic!("a file")
        };
        assert_eq!((file.size, file.read(1, 3).unwrap()), (5, b"ell".to_vec()));
        let Ok(Found::Directory(entries)) = open(&root, "") else {
            panic!("a directory")
        };
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["notes", "hard"]);
    }
}
