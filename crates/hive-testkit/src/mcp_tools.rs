//! The MCP Inspector and the MCP conformance suite, for the tests that run them: programs of Node
//! that `scripts/setup.sh test` installs below the target directory, with a Node of their own.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Where they are.
#[derive(Debug, Clone)]
pub struct McpTools {
    packages: PathBuf,
    node: PathBuf,
}

/// The tools; none where they are not installed, and then standard error says so.
///
/// # Panics
/// When there are none although `HIVE_REQUIRE_CLAUDE` says that everything must be there: a test that
/// returns without them looks as if it had passed.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
pub fn find() -> Option<McpTools> {
    let this = std::env::current_exe().ok()?;
    let mut targets = this
        .ancestors()
        .map(|dir| dir.join("mcp-tools/node_modules"));
    let found = targets.find_map(McpTools::at);
    if found.is_none() {
        assert!(
            std::env::var_os("HIVE_REQUIRE_CLAUDE").is_none(),
            "HIVE_REQUIRE_CLAUDE is set, and the MCP Inspector or the conformance suite is missing: \
             run `scripts/setup.sh test`"
        );
        eprintln!(
            "SKIPPED: the MCP Inspector and the conformance suite are not here; \
             `scripts/setup.sh test` installs them where there are node and npm"
        );
    }
    found
}

impl McpTools {
    fn at(packages: PathBuf) -> Option<Self> {
        let nodes = ["x64", "arm64"].map(|cpu| packages.join(format!("node-linux-{cpu}/bin/node")));
        let node = nodes.into_iter().find(|node| node.is_file())?;
        let tools = Self { packages, node };
        let are_there = [INSPECTOR, CONFORMANCE].map(|script| tools.script(script).is_file());
        (are_there == [true, true]).then_some(tools)
    }

    /// The command line of the Inspector, with a home of its own.
    pub fn inspector(&self, home: &Path) -> Command {
        let mut inspector = self.command(INSPECTOR, home);
        inspector.arg("--cli");
        inspector
    }

    /// The conformance suite, with a home of its own.
    pub fn conformance(&self, home: &Path) -> Command {
        self.command(CONFORMANCE, home)
    }

    fn script(&self, script: &str) -> PathBuf {
        self.packages.join("@modelcontextprotocol").join(script)
    }

    /// Nothing of the environment comes along but the path.
    fn command(&self, script: &str, home: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command
            .arg(self.script(script))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .current_dir(home)
            .stdin(Stdio::null());
        command
    }
}

const INSPECTOR: &str = "inspector/clients/launcher/build/index.js";
const CONFORMANCE: &str = "conformance/dist/index.js";

/// What a program wrote, for a test that fails.
pub fn said(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
