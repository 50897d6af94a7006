//! What breaks under the store ends in a clear error or in recovery, never in silent loss.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;
#[path = "faults/disk.rs"]
mod disk;
#[path = "faults/files.rs"]
mod files;
#[path = "faults/flips.rs"]
mod flips;
#[path = "faults/formats.rs"]
mod formats;
#[path = "faults/log.rs"]
mod log;
#[path = "faults/operations.rs"]
mod operations;
#[path = "faults/redo.rs"]
mod redo;
