//! The lines of a file from its end towards its beginning.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
};

const CHUNK: u64 = 64 * 1024;

/// Reads a file backwards, line by line, holding one chunk and the line at hand.
pub(super) struct Backwards<'a> {
    file: &'a File,
    /// Everything before this offset is unread.
    unread: u64,
    /// Bytes after `unread` that are not given out yet.
    buffer: Vec<u8>,
}

impl<'a> Backwards<'a> {
    /// Starts at `end`.
    pub(super) fn new(file: &'a File, end: u64) -> Self {
        Self {
            file,
            unread: end,
            buffer: Vec::new(),
        }
    }

    /// The line before the last one given, without its newline.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        // The newline that ends the line at hand.
        let mut searched = 0;
        loop {
            let body_end = self.buffer.len().saturating_sub(1);
            let candidates = &self.buffer[..body_end.saturating_sub(searched)];
            if let Some(at) = candidates.iter().rposition(|&byte| byte == b'\n') {
                let mut line = self.buffer.split_off(at + 1);
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                return Ok(Some(line));
            }
            searched = body_end;
            if self.unread == 0 {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                let mut line = std::mem::take(&mut self.buffer);
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                return Ok(Some(line));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        // Long lines take longer steps, so that joining them stays linear.
        let step = CHUNK.max(self.buffer.len() as u64).min(self.unread);
        self.unread -= step;
        let mut chunk = vec![0; usize::try_from(step).map_err(io::Error::other)?];
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.unread))?;
        file.read_exact(&mut chunk)?;
        chunk.append(&mut self.buffer);
        self.buffer = chunk;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut reader = Backwards::new(&file, bytes.len() as u64);
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            lines.push(line);
        }
        lines.reverse();
        lines
    }

    #[test]
    fn lines_longer_than_a_chunk() {
        let long = vec![b'x'; 200_000];
        let bytes = [&long[..], b"\nshort\n", &long[..], b"\n"].concat();
        assert_eq!(lines(&bytes), [long.clone(), b"short".to_vec(), long]);
    }

    proptest! {
        #[test]
        fn prop_backwards_is_forwards_reversed(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..20)
        ) {
            let wanted: Vec<Vec<u8>> = parts
                .iter()
                .map(|part| part.iter().copied().filter(|&b| b != b'\n').collect())
                .collect();
            let mut bytes = Vec::new();
            for line in &wanted {
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
            }
            prop_assert_eq!(lines(&bytes), wanted);
        }
    }
}
