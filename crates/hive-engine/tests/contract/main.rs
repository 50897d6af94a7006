//! One contract, two engines: `hive-engine` and the real `claude`, both on the rehearsal model.
//!
//! Each case is a function over an engine; the macro makes two tests of it. The real `claude` is
//! found by `CLAUDE_BIN`, or where `make test` installs it; without it those tests say that they are
//! skipped, and with `HIVE_REQUIRE_CLAUDE` they fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]

mod browser;
mod cage;
mod cases;
mod errors;
mod native;
mod process;
mod support;
