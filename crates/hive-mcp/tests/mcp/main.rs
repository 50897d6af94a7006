//! The server `hyperhive` over real byte streams, against a real daemon.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod definitions;
mod eras;
mod gated;
mod handover;
mod rules;
mod tools;
