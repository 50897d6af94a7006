//! Reading a write-ahead log the way SQLite's recovery will, before SQLite touches it.
//!
//! Recovery goes up to the last commit whose frames all check, and says nothing of what lies
//! behind. Counting beforehand tells whether that is all there was, while the files are still as
//! the crash left them.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first word of a log; its lowest bit says that checksums are over big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// A log whose header is intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    /// They change whenever the log starts over: the first counts up, the second is random.
    pub(super) salts: [u32; 2],
    /// Frames up to the last commit that can be recovered.
    pub(super) frames: u32,
}

impl Log {
    /// What the log at `path` holds; none when there is no log, or nothing that recovery would read.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Self::read_from(BufReader::with_capacity(256 * 1024, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_from(mut log: impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER];
        if !fill(&mut log, &mut header)? || word(&header, 0) & !1 != MAGIC {
            return Ok(None);
        }
        let mut checksum = Checksum {
            big_endian: word(&header, 0) & 1 == 1,
            sums: [0, 0],
        };
        let page_size = word(&header, 8);
        checksum.add(&header[..24]);
        let page_is_legal = page_size.is_power_of_two() && (512..=65_536).contains(&page_size);
        if !page_is_legal || !checksum.is(&header, 24) {
            return Ok(None);
        }
        let salts = [word(&header, 16), word(&header, 20)];
        let (mut read, mut frames) = (0, 0);
        let mut frame = vec![0; FRAME_HEADER + page_size as usize];
        while fill(&mut log, &mut frame)? {
            checksum.add(&frame[..8]);
            checksum.add(&frame[FRAME_HEADER..]);
            let belongs = [word(&frame, 8), word(&frame, 12)] == salts;
            if !belongs || word(&frame, 0) == 0 || !checksum.is(&frame, 16) {
                break;
            }
            read += 1;
            // Only the last frame of a commit carries the size of the database.
            if word(&frame, 4) != 0 {
                frames = read;
            }
        }
        Ok(Some(Self { salts, frames }))
    }
}

/// The running checksum of a log, as the file format defines it.
struct Checksum {
    big_endian: bool,
    sums: [u32; 2],
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let load = |chunk: &[u8]| {
            let word = [chunk[0], chunk[1], chunk[2], chunk[3]];
            if self.big_endian {
                u32::from_be_bytes(word)
            } else {
                u32::from_le_bytes(word)
            }
        };
        let [mut first, mut second] = self.sums;
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(load(&pair[..4])).wrapping_add(second);
            second = second.wrapping_add(load(&pair[4..])).wrapping_add(first);
        }
        self.sums = [first, second];
    }

    fn is(&self, bytes: &[u8], at: usize) -> bool {
        self.sums == [word(bytes, at), word(bytes, at + 4)]
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Fills the buffer; false at the end of the file.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn it_counts_what_sqlite_recovers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let conn = Connection::open(&path).unwrap();
        conn.pragma_update(None, "journal_mode", "wal").unwrap();
        conn.execute_batch(
            "CREATE TABLE t (x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);",
        )
        .unwrap();
        let frames: u32 = conn
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
            .unwrap();
        let wal = dir.path().join("x.db-wal");
        let log = Log::read(&wal).unwrap().unwrap();
        assert_eq!(log.frames, frames);

        let bytes = std::fs::read(&wal).unwrap();
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(Log::read_from(cut).unwrap().unwrap().frames, frames - 1);
        let mut flipped = bytes.clone();
        flipped[HEADER + FRAME_HEADER + 7] ^= 1;
        assert_eq!(Log::read_from(&flipped[..]).unwrap().unwrap().frames, 0);
        flipped.clone_from(&bytes);
        flipped[17] ^= 1;
        assert_eq!(Log::read_from(&flipped[..]).unwrap(), None);
        assert_eq!(Log::read_from(&[0_u8; 4096][..]).unwrap(), None);
        assert_eq!(Log::read(&dir.path().join("none")).unwrap(), None);
    }
}
