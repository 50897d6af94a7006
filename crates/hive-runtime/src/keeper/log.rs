//! An agent's output on disk: two files, of which the older is replaced when the newer is full.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The newer file.
const NEWER: &str = "output.log";
/// The older one.
const OLDER: &str = "output.log.1";

/// Takes output without end and keeps the newest of it.
#[derive(Debug)]
pub(crate) struct RotatingLog {
    dir: PathBuf,
    file: File,
    size: u64,
    half: u64,
}

impl RotatingLog {
    /// Goes on where the run before stopped.
    pub(crate) fn open(dir: &Path, bytes: u64) -> io::Result<Self> {
        let file = open(&dir.join(NEWER))?;
        Ok(Self {
            dir: dir.to_path_buf(),
            size: file.metadata()?.len(),
            file,
            half: (bytes / 2).max(1024),
        })
    }

    /// Writes what it can. A full disk costs output, and never holds up the agent.
    pub(crate) fn write(&mut self, output: &[u8]) {
        for piece in output.chunks(usize::try_from(self.half).unwrap_or(usize::MAX)) {
            if self.size.saturating_add(piece.len() as u64) > self.half {
                self.turn_over().ok();
            }
            if self.file.write_all(piece).is_ok() {
                self.size += piece.len() as u64;
            }
        }
    }

    fn turn_over(&mut self) -> io::Result<()> {
        fs::rename(self.dir.join(NEWER), self.dir.join(OLDER))?;
        self.file = open(&self.dir.join(NEWER))?;
        self.size = 0;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// The newest output, at most `max` bytes, from the beginning of a line.
pub(crate) fn read_newest(dir: &Path, max: usize) -> io::Result<Vec<u8>> {
    let newer = read_end(&dir.join(NEWER), max)?;
    let room = max - newer.len();
    let mut output = read_end(&dir.join(OLDER), room)?;
    output.extend(newer);
    // What was cut off begins somewhere within a line.
    if output.len() == max {
        let line = output.iter().position(|byte| *byte == b'\n');
        output.drain(..line.map_or(0, |end| end + 1));
    }
    Ok(output)
}

fn read_end(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(max as u64)))?;
    let mut end = Vec::new();
    file.take(max as u64).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_output_is_kept_within_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = RotatingLog::open(dir.path(), 4096).unwrap();
        log.write(
            "one piece that is larger than everything that is kept\n"
                .repeat(500)
                .as_bytes(),
        );
        for number in 0..1_000 {
            log.write(format!("line {number}\n").as_bytes());
        }
        let kept: u64 = [NEWER, OLDER]
            .iter()
            .map(|name| fs::metadata(dir.path().join(name)).unwrap().len())
            .sum();
        assert!(kept <= 4096, "{kept}");
        let newest = String::from_utf8(read_newest(dir.path(), 100).unwrap()).unwrap();
        assert!(newest.ends_with("line 998\nline 999\n"), "{newest}");
        assert!(newest.starts_with("line "), "{newest}");

        let mut log = RotatingLog::open(dir.path(), 4096).unwrap();
        log.write(b"the next run\n");
        let all = String::from_utf8(read_newest(dir.path(), 1 << 20).unwrap()).unwrap();
        assert!(all.ends_with("line 999\nthe next run\n"), "{all}");
        assert!(all.len() as u64 > 2048, "both files are read");
    }

    #[test]
    fn no_output_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_newest(dir.path(), 100).unwrap(), b"");
    }
}
