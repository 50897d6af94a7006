//! Where the programs of the background shell are.

use std::path::PathBuf;

/// `hive-bash-daemon` and `hive-bash-mcp`: what their variables name, or what cargo built next to
/// this executable.
///
/// # Errors
/// When one is missing.
pub fn programs() -> anyhow::Result<[PathBuf; 2]> {
    let build = "-p hive-bash --bins";
    Ok([
        crate::binary::find("hive-bash-daemon", "HIVE_BASH_DAEMON_BIN", build)?,
        crate::binary::find("hive-bash-mcp", "HIVE_BASH_MCP_BIN", build)?,
    ])
}
