//! The server as its clients see it: bytes on a socket, the binary, and the real `claude`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod anthropic;
mod claude;
mod cli;
mod client;
mod faults;
mod limits;
mod openai;
mod recording;
mod replay;
mod tour;
