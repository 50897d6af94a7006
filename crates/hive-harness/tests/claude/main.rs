//! `hive serve` drives the real `claude` against a rehearsed model: mail in, one engine process per
//! turn, every outcome that the CLI can be made to show, and the plug pulled in the middle. The same
//! tests run on the native engine in `tests/native`.
//!
//! Each test has a hive of its own (the real daemon), a model of its own and an agent of its own.
//! They ask what a user would ask: what became of the message, what was seen on the event stream,
//! what the model was told, what is left on the machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approvals;
mod bash;
mod every_tool;
mod gateway;
mod limits;
mod own_claude;
mod plugs;
mod sessions;
mod stage;
mod tools;
mod turns;
mod upkeep;
mod warm;

/// The engine that these tests run; none where it is not installed.
mod engine {
    pub(crate) fn under_test() -> Option<std::path::PathBuf> {
        hive_testkit::claude::claude()
    }
}
