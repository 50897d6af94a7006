//! The daemon and its bridge as real processes, with real commands and a real hive.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod cargo_function;
mod definitions;
mod ends;
mod kills;
mod news;
mod protocol;
mod tasks;
