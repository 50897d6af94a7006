//! The file of one stream: written as it comes, never longer than a limit, cheap to read at its end.
//!
//! When it would pass the limit, its middle is left out: its first and its last quarter stay, with
//! a line between them that says how much is gone. So the beginning of a long output is kept, its
//! end is always there, and each byte is written twice at most on average.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::replace;

/// How much is read and written at once, in bytes; a quarter of the least limit.
pub(crate) const CHUNK: usize = 16 * 1024;

/// A file that keeps its beginning and its end.
#[derive(Debug)]
pub(crate) struct Capped {
    path: PathBuf,
    file: File,
    length: u64,
    limit: u64,
    left_out: u64,
    /// The length of the line that says so.
    marker: u64,
}

impl Capped {
    /// Makes the file; one that was there is emptied.
    pub(crate) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            length: 0,
            limit,
            left_out: 0,
            marker: 0,
        })
    }

    /// Adds at most [`CHUNK`] bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let more = bytes.len() as u64;
        if self.length + more > self.limit {
            self.squeeze()?;
        }
        self.file.write_all_at(bytes, self.length)?;
        self.length += more;
        Ok(())
    }

    /// Leaves out the middle.
    fn squeeze(&mut self) -> io::Result<()> {
        let keep = self.limit / 4;
        self.left_out += self.length - 2 * keep - self.marker;
        let marker = format!("\n[hive-bash: {} bytes left out here]\n", self.left_out);
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let mut new = replace::unfinished(dir)?;
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut (&self.file).take(keep), &mut new)?;
        new.write_all(marker.as_bytes())?;
        self.file.seek(SeekFrom::Start(self.length - keep))?;
        io::copy(&mut (&self.file).take(keep), &mut new)?;
        self.file = new.persist(&self.path).map_err(|error| error.error)?;
        self.marker = marker.len() as u64;
        self.length = 2 * keep + self.marker;
        Ok(())
    }
}

/// The last `max` bytes of a file as text, and how long the file is. One that is not there is empty.
pub(crate) fn tail(path: &Path, max: usize) -> (String, u64) {
    read_tail(path, max).unwrap_or_default()
}

fn read_tail(path: &Path, max: usize) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(max as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::with_capacity(max);
    file.take(max as u64).read_to_end(&mut bytes)?;
    // A character that was cut in half is left out rather than shown as rubbish.
    let whole = match from {
        0 => 0,
        _ => bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000)
            .count(),
    };
    let text = String::from_utf8_lossy(&bytes[whole..]).into_owned();
    Ok((text, length))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIMIT: u64 = 64 * 1024;

    #[test]
    fn a_short_output_is_kept_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.out");
        let mut file = Capped::create(&path, LIMIT).unwrap();
        file.append(b"one\n").unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(tail(&path, 4), ("two\n".to_owned(), 8));
    }

    #[test]
    fn a_long_output_keeps_both_ends_and_says_what_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.out");
        let mut file = Capped::create(&path, LIMIT).unwrap();
        let mut written = 0_u64;
        for n in 0..100_000 {
            let line = format!("line {n}\n");
            file.append(line.as_bytes()).unwrap();
            written += line.len() as u64;
            assert!(file.length <= LIMIT);
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() as u64 <= LIMIT, "{}", text.len());
        assert!(text.starts_with("line 0\nline 1\n"));
        assert!(text.ends_with("line 99998\nline 99999\n"));
        let (head, rest) = text.split_once("\n[hive-bash: ").unwrap();
        let (number, end) = rest.split_once(" bytes left out here]\n").unwrap();
        let gone: u64 = number.parse().unwrap();
        assert_eq!(head.len() as u64 + gone + end.len() as u64, written);
    }

    #[test]
    fn a_tail_is_whole_characters_and_missing_files_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.out");
        fs::write(&path, "aäöü🐝").unwrap();
        for max in 0..20 {
            let (text, length) = tail(&path, max);
            assert_eq!(length, 11);
            assert!("aäöü🐝".ends_with(&text), "{max}: {text:?}");
        }
        assert_eq!(tail(&dir.path().join("none"), 10), (String::new(), 0));
    }
}
