//! Cutting a byte stream into lines, with the limit enforced while reading.
//!
//! A peer that sends a gigabyte without a newline costs one line's worth of memory: the buffer
//! refuses to grow past the limit, and says so before the rest arrives.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// The longest line on any socket of the hive, newline excluded.
pub const MAX_LINE: usize = 1024 * 1024;
/// How much room a read gets at least, and how far a buffer may pass the limit of its lines.
pub const READ_CHUNK: usize = 8 * 1024;

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
    ///
    /// Once [`Self::next_line`] has no more, the buffer never holds more than its limit and one
    /// [`READ_CHUNK`], room included.
    pub fn room(&mut self) -> &mut BytesMut {
        if !self.bytes.try_reclaim(READ_CHUNK) {
            self.grow();
        }
        &mut self.bytes
    }

    /// Adds bytes that were read elsewhere, at most a [`READ_CHUNK`] at a time. Call
    /// [`Self::next_line`] until it has no more before adding again.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::from(bytes);
        } else {
            self.room().extend_from_slice(bytes);
        }
    }

    /// The next whole line without its newline, or none until more is read. Blank lines are
    /// skipped.
    ///
    /// # Errors
    /// [`LineTooLong`] as soon as a line is known to pass the limit.
    pub fn next_line(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) else {
                self.scanned = self.bytes.len();
                self.check(self.scanned)?;
                self.release();
                return Ok(None);
            };
            let end = self.scanned + offset;
            self.check(end)?;
            let line = self.bytes.split_to(end).freeze();
            self.bytes.advance(1);
            self.scanned = 0;
            if let Some(line) = content(line) {
                return Ok(Some(line));
            }
        }
    }

    /// The last line of a stream that ended without a newline.
    pub fn last_line(&mut self) -> Option<Bytes> {
        self.scanned = 0;
        content(self.bytes.split().freeze())
    }

    /// Hands over whole lines of bytes that were read elsewhere, as [`Self::next_line`] would, up to
    /// the first that `take` says no to; only what is left is held. As before [`Self::push`], call
    /// [`Self::next_line`] until it has no more.
    pub fn take_lines(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) {
        let mut rest = bytes;
        while self.bytes.is_empty()
            && let Some(end) = memchr::memchr(b'\n', rest).filter(|end| *end <= self.limit)
        {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if !is_blank(line) && !take(without_return(line)) {
                break;
            }
            rest = after;
        }
        if !rest.is_empty() {
            self.push(rest);
        }
    }

    /// How many bytes of an unfinished line are held.
    pub fn partial(&self) -> usize {
        self.bytes.len()
    }

    /// Doubles the room as far as the limit allows; left to itself, the buffer would double past it.
    fn grow(&mut self) {
        let length = self.bytes.len();
        let least = length.saturating_add(READ_CHUNK);
        let most = self.limit.saturating_add(READ_CHUNK).max(least);
        let mut grown = BytesMut::with_capacity((2 * length).clamp(least, most));
        grown.extend_from_slice(&self.bytes);
        self.bytes = grown;
    }

    /// Gives the memory back while nothing is held.
    fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    fn check(&self, length: usize) -> Result<(), LineTooLong> {
        if length > self.limit {
            Err(LineTooLong { limit: self.limit })
        } else {
            Ok(())
        }
    }
}

/// The line without the carriage return that terminals add, or none when it is blank.
fn content(mut line: Bytes) -> Option<Bytes> {
    line.truncate(without_return(&line).len());
    (!is_blank(&line)).then_some(line)
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}
