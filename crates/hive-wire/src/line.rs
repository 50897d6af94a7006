//! Cutting a byte stream into lines, with the limit enforced while reading.
//!
//! A peer that sends a gigabyte without a newline costs one line's worth of memory: the buffer
//! refuses to grow past the limit, and says so before the rest arrives.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// The longest line on any socket of the hive, newline excluded.
pub const MAX_LINE: usize = 1024 * 1024;

/// How much room a read gets at least.
const READ_CHUNK: usize = 8 * 1024;
/// A buffer larger than this is given back once it is empty.
const KEEP_CAPACITY: usize = 64 * 1024;

/// The line is longer than the limit. What follows on the stream cannot be trusted to be a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the line is longer than {limit} bytes")]
pub struct LineTooLong {
    /// The limit that was passed.
    pub limit: usize,
}

/// Bytes read so far and not yet cut into lines.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: BytesMut,
    /// How far the bytes are known to hold no newline.
    scanned: usize,
    limit: usize,
}

impl LineBuffer {
    /// An empty buffer for lines of at most `limit` bytes. It allocates when it is first read into.
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            scanned: 0,
            limit,
        }
    }

    /// Room for the next read. Call [`Self::next_line`] until it has no more before reading again.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.bytes.is_empty() && self.bytes.capacity() > KEEP_CAPACITY {
            self.bytes = BytesMut::new();
        }
        self.bytes.reserve(READ_CHUNK);
        &mut self.bytes
    }

    /// The next whole line without its newline, or none until more is read. Blank lines are
    /// skipped.
    ///
    /// # Errors
    /// [`LineTooLong`] as soon as a line is known to pass the limit.
    pub fn next_line(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        loop {
            let newline = self.bytes[self.scanned..]
                .iter()
                .position(|byte| *byte == b'\n');
            let Some(offset) = newline else {
                self.scanned = self.bytes.len();
                return self.check(self.scanned).map(|()| None);
            };
            let end = self.scanned + offset;
            self.check(end)?;
            let mut line = self.bytes.split_to(end).freeze();
            self.bytes.advance(1);
            self.scanned = 0;
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(line));
            }
        }
    }

    /// The last line of a stream that ended without a newline.
    pub fn last_line(&mut self) -> Option<Bytes> {
        self.scanned = 0;
        let line = self.bytes.split().freeze();
        (!line.iter().all(u8::is_ascii_whitespace)).then_some(line)
    }

    /// How many bytes of an unfinished line are held.
    pub fn partial(&self) -> usize {
        self.bytes.len()
    }

    fn check(&self, length: usize) -> Result<(), LineTooLong> {
        if length > self.limit {
            Err(LineTooLong { limit: self.limit })
        } else {
            Ok(())
        }
    }
}
