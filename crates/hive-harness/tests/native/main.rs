//! Everything that `hive serve` does with the real `claude`, with the native engine: the turn loop
//! knows no difference, so the tests are the same files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../claude/bash.rs"]
mod bash;
#[path = "../claude/limits.rs"]
mod limits;
#[path = "../claude/plugs.rs"]
mod plugs;
#[path = "../claude/sessions.rs"]
mod sessions;
#[path = "../claude/stage.rs"]
mod stage;
#[path = "../claude/tools.rs"]
mod tools;
#[path = "../claude/turns.rs"]
mod turns;
#[path = "../claude/upkeep.rs"]
mod upkeep;
#[path = "../claude/warm.rs"]
mod warm;

/// The engine that these tests run.
mod engine {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "another engine may not be installed"
    )]
    pub(crate) fn under_test() -> Option<std::path::PathBuf> {
        Some(hive_testkit::engine::native_engine().unwrap())
    }
}
