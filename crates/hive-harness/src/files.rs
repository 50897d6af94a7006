//! Small files of the harness: written whole or not at all, and read within bounds.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// A text file, possibly cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CappedText {
    /// Its beginning; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Whether there was more.
    pub is_cut: bool,
}

/// Replaces a file so that a reader sees the old one or the new one, never a part. Readable for the
/// owner alone.
///
/// # Errors
/// Those of the disk, with the path.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let with_path = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot write {}: {error}", path.display()),
        )
    };
    let beside = beside(path);
    let write = || {
        // A file that an earlier life left half written is in the way of `create_new`.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(content)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        drop(file);
        fs::rename(&beside, path)
    };
    write().map_err(with_path)
}

/// The name under which a file is written before it takes its place.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Reads at most `max` bytes of a regular file; `None` when there is none. Opening never waits, be
/// it a pipe that somebody put there.
///
/// # Errors
/// Those of the disk, and `InvalidInput` for anything but a regular file.
pub fn read_capped(path: &Path, max: u64) -> io::Result<Option<CappedText>> {
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits())
        .expect("flags of open fit into its argument");
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nonblock)
        .open(path);
    let file: File = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no regular file", path.display()),
        ));
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() as u64 > max;
    if is_cut {
        bytes.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    }
    Ok(Some(CappedText {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        is_cut,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private_even_after_a_crash_in_between() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(beside(&path), "half").unwrap();
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn reading_is_bounded_and_does_not_wait_on_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert_eq!(read_capped(&path, 3).unwrap(), None);
        fs::write(&path, "abcd").unwrap();
        let read = read_capped(&path, 3).unwrap().unwrap();
        assert_eq!((read.text.as_str(), read.is_cut), ("abc", true));
        assert!(!read_capped(&path, 4).unwrap().unwrap().is_cut);
        fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(read_capped(&path, 4).unwrap().unwrap().text, "a\u{fffd}");

        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let error = read_capped(&pipe, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
