//! Writing past the page cache: a record is synced a seventh sooner, because there is no page to
//! copy, to mark and to look for again.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

use super::{KEPT_BYTES, SECTOR};

/// What every device takes as the beginning of a buffer.
const ALIGNMENT: usize = 4096;

/// A file that is written to directly, sector by sector.
#[derive(Debug)]
pub(super) struct Direct {
    file: File,
    /// A record where the device can fetch it.
    buffer: Vec<u8>,
}

impl Direct {
    /// Opens a file that is there; the sector at `scratch` holds nothing of value.
    ///
    /// # Errors
    /// When the file system has no such way, or has larger sectors.
    pub(super) fn open(path: &Path, scratch: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::DIRECT.bits().cast_signed())
            .open(path)?;
        let mut direct = Self {
            file,
            buffer: Vec::new(),
        };
        // Some say so only when they are written to.
        direct.write_all_at(&[0; SECTOR], scratch)?;
        Ok(direct)
    }

    /// Writes whole sectors.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn write_all_at(&mut self, sectors: &[u8], at: u64) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.buffer.reserve(ALIGNMENT + sectors.len());
        let start = self.buffer.as_ptr().align_offset(ALIGNMENT);
        self.buffer.resize(start, 0);
        self.buffer.extend_from_slice(sectors);
        self.file.write_all_at(&self.buffer[start..], at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that was skipped says so")]
    fn sectors_of_any_number_are_written_where_they_belong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![7; 64 * SECTOR]).unwrap();
        let mut direct = match Direct::open(&path, 0) {
            Ok(direct) => direct,
            Err(error) => return eprintln!("skipped: no direct writing here: {error}"),
        };
        for (sectors, at, byte) in [(1, 1, 1), (9, 2, 2), (40, 11, 3)] {
            direct
                .write_all_at(&vec![byte; sectors * SECTOR], (at * SECTOR) as u64)
                .unwrap();
        }
        let written = std::fs::read(&path).unwrap();
        let expected: Vec<u8> = [(0, 1), (1, 1), (2, 9), (3, 40), (7, 13)]
            .iter()
            .flat_map(|(byte, sectors)| vec![*byte; sectors * SECTOR])
            .collect();
        assert!(written == expected);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(Direct::open(&path, 0).is_err());
        assert!(!path.exists());
    }
}
