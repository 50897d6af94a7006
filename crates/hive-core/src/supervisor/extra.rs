//! The file of further MCP servers (M13): written by the host where the agent can only read it.

use std::{fs, path::Path};

use anyhow::Context;

use crate::agent_config::{self, AgentConfig};

/// Its name in the directory of the agent's sockets.
pub(super) const FILE: &str = "extra-mcp.json";

/// Writes what the applied configuration says, or removes what an earlier one said.
pub(super) fn write(run: &Path, config: &AgentConfig) -> anyhow::Result<()> {
    let file = run.join(FILE);
    let Some(servers) = agent_config::extra_mcp(config) else {
        return match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", file.display()))
            }
            _ => Ok(()),
        };
    };
    let next = run.join(".extra-mcp.next");
    fs::write(&next, servers.to_string())
        .and_then(|()| fs::rename(&next, &file))
        .with_context(|| format!("cannot write {}", file.display()))
}
