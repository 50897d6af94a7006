//! What comes in on standard input.

use std::io::{BufRead as _, Read as _};

use tokio::sync::mpsc;

use crate::stream_json::Line;

/// The longest text that is taken as a prompt.
pub const MAX_INPUT: usize = 10 * 1024 * 1024;
/// The longest line of a stream; pictures are sent inline.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// All of standard input.
pub fn read_all() -> Result<String, String> {
    let mut bytes = Vec::new();
    let limit = MAX_INPUT as u64 + 1;
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("Error: stdin could not be read: {error}"))?;
    if bytes.len() > MAX_INPUT {
        return Err("Error: piped stdin input exceeds 10MB. Put it into a file and name the file in the prompt.".into());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a line of the stream is.
#[derive(Debug)]
pub enum Incoming {
    /// Understood.
    Line(Box<Line>),
    /// Not understood, with the reason.
    Bad(String),
}

/// Reads lines on a thread of its own: a read that waits cannot be given up otherwise.
pub fn lines() -> mpsc::Receiver<Incoming> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if line.len() as u64 >= MAX_LINE {
                // The rest of it cannot be told from the next line.
                let text = format!("a line of more than {MAX_LINE} bytes");
                drop(sender.blocking_send(Incoming::Bad(text)));
                return;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let incoming = match serde_json::from_slice(&line) {
                Ok(line) => Incoming::Line(Box::new(line)),
                Err(error) => Incoming::Bad(error.to_string()),
            };
            if sender.blocking_send(incoming).is_err() {
                return;
            }
        }
    });
    receiver
}
