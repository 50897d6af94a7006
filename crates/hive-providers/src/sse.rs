//! Server-sent events, cut from bytes that arrive in any pieces.
//!
//! Only what model APIs use: `event` and `data` fields, comments and blank lines. Lines may end in
//! LF, CRLF or CR. A line or event longer than the limit ends the stream with an error, so that a
//! broken server cannot fill the memory.

use thiserror::Error;

/// The longest event that is accepted.
const MAX_EVENT: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty when there is none.
    pub event: String,
    /// The `data` fields, joined with newlines.
    pub data: String,
}

/// The stream is not what it claims to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SseError {
    /// An event exceeds the limit.
    #[error("the server sent an event of more than {MAX_EVENT} bytes")]
    TooLong,
    /// Not UTF-8.
    #[error("the server sent a line that is not UTF-8")]
    NotUtf8,
}

/// Turns bytes into events.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: String,
    data: String,
    has_data: bool,
    after_cr: bool,
}

impl SseParser {
    /// Takes more bytes and appends the events that they complete to `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        for &byte in bytes {
            let follows_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if follows_cr => {}
                b'\n' => self.end_line(events)?,
                b'\r' => {
                    self.after_cr = true;
                    self.end_line(events)?;
                }
                _ => {
                    if self.line.len() + self.data.len() >= MAX_EVENT {
                        return Err(SseError::TooLong);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| SseError::NotUtf8)?;
        if line.is_empty() {
            if self.has_data {
                events.push(SseEvent {
                    event: std::mem::take(&mut self.event),
                    data: std::mem::take(&mut self.data),
                });
            }
            self.event.clear();
            self.data.clear();
            self.has_data = false;
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // Comments, `id`, `retry` and what may come.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        SseParser::default().push(bytes, &mut events)?;
        Ok(events)
    }

    #[test]
    fn events_are_cut() {
        let event = |event: &str, data: &str| SseEvent {
            event: event.into(),
            data: data.into(),
        };
        for (bytes, expected) in [
            ("data: a\n\n", vec![event("", "a")]),
            (
                "event: x\r\ndata:a\r\ndata:  b\r\n\r\n",
                vec![event("x", "a\n b")],
            ),
            (
                "data: a\r\rdata: b\r\r",
                vec![event("", "a"), event("", "b")],
            ),
            (
                ": ping\n\nevent: lonely\n\ndata: z\n\n",
                vec![event("", "z")],
            ),
            ("data\n\n", vec![event("", "")]),
            ("data: unfinished\n", vec![]),
        ] {
            assert_eq!(all(bytes.as_bytes()).unwrap(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_flood_without_a_newline_ends() {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let chunk = vec![b'x'; 1024 * 1024];
        let result = (0..9).try_for_each(|_| parser.push(&chunk, &mut events));
        assert_eq!(result, Err(SseError::TooLong));
        assert_eq!(all(b"data: \xff\n"), Err(SseError::NotUtf8));
    }

    proptest! {
        #[test]
        fn fuzz_any_bytes_in_any_pieces_give_the_same(
            bytes in proptest::collection::vec(prop_oneof![
                Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()
            ], 0..200),
            cut in 0usize..200,
        ) {
            let whole = all(&bytes);
            let mut parser = SseParser::default();
            let mut events = Vec::new();
            let cut = cut.min(bytes.len());
            let result = parser
                .push(&bytes[..cut], &mut events)
                .and_then(|()| parser.push(&bytes[cut..], &mut events));
            prop_assert_eq!(whole, result.map(|()| events));
        }
    }
}
