//! Where the real `claude` is, for the tests that run it.

use std::path::PathBuf;

/// The version that the tests are written for: others behave differently.
pub const VERSION: &str = "2.1.325";

/// The real `claude`: `CLAUDE_BIN`, or what `scripts/setup.sh test` installed below the target
/// directory.
///
/// # Panics
/// When there is none although `HIVE_REQUIRE_CLAUDE` says that there must be.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
pub fn claude() -> Option<PathBuf> {
    let found = std::env::var_os("CLAUDE_BIN")
        .map(PathBuf::from)
        .or_else(installed)
        .filter(|path| path.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("HIVE_REQUIRE_CLAUDE").is_none(),
            "HIVE_REQUIRE_CLAUDE is set and there is no claude: run `scripts/setup.sh test`"
        );
        eprintln!("SKIPPED: there is no claude {VERSION}; `scripts/setup.sh test` installs it");
    }
    found
}

fn installed() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let cpu = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let below = format!("claude/node_modules/@anthropic-ai/claude-code-linux-{cpu}/claude");
    let mut targets = this.ancestors().map(|target| target.join(&below));
    targets.find(|path| path.is_file())
}
