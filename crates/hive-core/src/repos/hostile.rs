//! Reading what an agent can change: beneath one directory, following no link, on one file system,
//! plain files only, and never more than was asked for.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::fs::{self, Dir, FileType, Mode, OFlags, ResolveFlags};

/// A directory of which everything inside may be hostile.
pub(super) struct Root(OwnedFd);

/// Why something was not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// It is not there.
    Missing,
    /// It is there, and no plain file or directory: a link, a device, a queue.
    NotPlain,
    /// It is larger than it may be.
    TooLarge,
    /// The system refuses.
    Io(io::Error),
}

impl From<rustix::io::Errno> for Unread {
    fn from(error: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match error {
            Errno::NOENT => Self::Missing,
            // Links, mounts and ways out of the directory, and files where directories should be.
            Errno::LOOP | Errno::XDEV | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => {
                Self::NotPlain
            }
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Root {
    /// Opens the directory itself, whose path is the host's own.
    pub(super) fn open(dir: &Path) -> Result<Self, Unread> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self(fs::open(dir, flags, Mode::empty())?))
    }

    /// Whether there is a directory at this path, and nothing but directories on the way to it.
    pub(super) fn is_dir(&self, path: &str) -> bool {
        self.beneath(path, OFlags::DIRECTORY).is_ok()
    }

    /// A directory inside.
    pub(super) fn dir(&self, path: &str) -> Result<Self, Unread> {
        self.beneath(path, OFlags::DIRECTORY).map(Self)
    }

    /// The bytes of a plain file inside, if they are at most `max`.
    pub(super) fn read(&self, path: &str, max: u64) -> Result<Vec<u8>, Unread> {
        // A queue would make us wait for its writer.
        let file = self.beneath(path, OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let found = fs::fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Unread::NotPlain);
        }
        if u64::try_from(found.st_size).unwrap_or(u64::MAX) > max {
            return Err(Unread::TooLarge);
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        File::from(file).take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(Unread::TooLarge);
        }
        Ok(bytes)
    }

    /// The names in this directory, at most `max` of them.
    pub(super) fn names(&self, max: usize) -> Result<Vec<String>, Unread> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            if names.len() == max {
                return Err(Unread::TooLarge);
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    fn beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Unread> {
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(fs::openat2(&self.0, path, flags, Mode::empty(), resolve)?)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn c6_only_plain_files_inside_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir_all(inside.join("d")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(inside.join("d/file"), "12345").unwrap();
        symlink("../out/secret", inside.join("file-link")).unwrap();
        symlink("../out", inside.join("dir-link")).unwrap();
        symlink("d/file", inside.join("link-inside")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            inside.join("queue"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let root = Root::open(&inside).unwrap();
        assert_eq!(root.read("d/file", 5).unwrap(), b"12345");
        assert!(matches!(root.read("d/file", 4), Err(Unread::TooLarge)));
        assert!(matches!(root.read("d/none", 4), Err(Unread::Missing)));
        for path in [
            "file-link",
            "dir-link/secret",
            "link-inside",
            "../out/secret",
            "/etc/passwd",
            "magic/etc/passwd",
            "queue",
            "d",
            "d/file/x",
        ] {
            let read = root.read(path, 1_000_000);
            assert!(matches!(read, Err(Unread::NotPlain)), "{path}: {read:?}");
        }
        assert!(root.is_dir("d") && !root.is_dir("dir-link") && !root.is_dir("d/file"));
        assert!(matches!(root.names(3), Err(Unread::TooLarge)));
        assert_eq!(root.dir("d").unwrap().names(3).unwrap(), ["file"]);
        assert!(Root::open(&inside.join("dir-link")).is_err());
    }
}
