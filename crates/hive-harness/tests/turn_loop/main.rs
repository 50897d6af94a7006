//! The loop from end to end: the real loop, reporter, control channel and guard, with a fake host
//! in memory and the fake engine as a real process.
//!
//! Every test has directories of its own. Tests are named after the requirements they check.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod boot;
mod compaction;
mod control;
mod host;
mod login;
mod outcomes;
mod plain;
mod reports;
mod rig;
mod stopping;
