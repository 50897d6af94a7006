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
    let mut zeros = Fetchable::default();
    zeros.end().resize(SECTOR, 0);
    write_durably(&file, zeros.whole_sectors(), scratch)?;
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

/// Bytes that are gathered where a device can fetch them, so that they need not be copied there.
#[derive(Debug, Default)]
pub(super) struct Fetchable {
    buffer: Vec<u8>,
    start: usize,
}

impl Fetchable {
    /// Begins anew, with room for what was gathered before, within reason.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.start = self.buffer.as_ptr().align_offset(ALIGNMENT);
        self.buffer.resize(self.start, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..]
    }

    /// What is added to this is gathered.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.buffer.truncate(self.start + length);
    }

    /// All of it as whole sectors, with zeros up to the end of the last one.
    pub(super) fn whole_sectors(&mut self) -> &[u8] {
        let length = self.len();
        let padded = length.next_multiple_of(SECTOR);
        self.buffer.reserve(ALIGNMENT + padded - length);
        // It may have moved as it grew; what is kept of its room spares the next one that.
        let start = self.buffer.as_ptr().align_offset(ALIGNMENT);
        if start != self.start {
            let gathered = self.start..self.start + length;
            self.buffer.resize(start.max(self.start) + length, 0);
            self.buffer.copy_within(gathered, start);
            self.start = start;
            self.truncate(length);
        }
        self.buffer.resize(self.start + padded, 0);
        self.bytes()
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
        let mut gathered = Fetchable::default();
        for (bytes, at, byte) in [(SECTOR, 1, 1), (9 * SECTOR - 5, 2, 2), (40 * SECTOR, 11, 3)] {
            gathered.clear();
            gathered.end().extend(std::iter::repeat_n(byte, bytes));
            let sectors = gathered.whole_sectors();
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
    fn what_is_gathered_stays_the_same_wherever_it_moves() {
        let mut gathered = Fetchable::default();
        let mut expected = Vec::new();
        for round in 0_u8..20 {
            gathered.clear();
            expected.clear();
            for step in 0..=round {
                let piece = vec![step + 1; 700 * usize::from(round) + 1];
                expected.extend_from_slice(&piece);
                gathered.end().extend_from_slice(&piece);
                // Growing in small steps is what moves it.
                gathered.buffer.shrink_to_fit();
            }
            assert_eq!(gathered.bytes(), expected);
            let length = gathered.len();
            let sectors = gathered.whole_sectors();
            assert_eq!(sectors.as_ptr().align_offset(ALIGNMENT), 0);
            assert_eq!(sectors.len(), length.next_multiple_of(SECTOR));
            let (whole, zeros) = sectors.split_at(length);
            assert_eq!(whole, expected);
            assert!(zeros.iter().all(|byte| *byte == 0));
            gathered.truncate(length);
            assert_eq!(gathered.bytes(), expected);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(open(&path, 0).is_err());
        assert!(!path.exists());
    }
}
