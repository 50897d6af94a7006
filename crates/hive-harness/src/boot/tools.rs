//! Which tools an engine has in a turn (M15).

use hive_mcp::groups::{Group, Groups};

use super::mcp_config::McpConfig;
use crate::engine::Purpose;

/// The engine's own tools that every agent has.
pub const BUILT_IN: [&str; 5] = ["Edit", "Glob", "Grep", "Read", "Write"];
/// The engine's own tools that come with the group `web_tools`.
pub const WEB: [&str; 2] = ["WebFetch", "WebSearch"];
/// The engine's own tools that nobody has: shell commands go through the background shell, and
/// sub-agents and lists would not outlive the turn.
pub const DENIED: [&str; 4] = ["Bash", "Task", "NotebookEdit", "TodoWrite"];

/// The tool lists of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLists {
    built_in: Vec<String>,
    mcp: Vec<String>,
}

impl ToolLists {
    /// The lists of an agent with these groups and MCP servers.
    pub fn new(groups: &Groups, mcp: &McpConfig) -> Self {
        let web = groups
            .has(Group::WebTools)
            .then_some(WEB)
            .into_iter()
            .flatten();
        Self {
            built_in: BUILT_IN.into_iter().chain(web).map(str::to_owned).collect(),
            mcp: mcp.allowed(),
        }
    }

    /// The built-in tools that there are. They are the same in every kind of turn, so that the
    /// model's cache of them stays good.
    pub fn built_in(&self) -> Vec<String> {
        self.built_in.clone()
    }

    /// What may be used without asking in a turn of this kind. A checkpoint has files and nothing
    /// else: mail that it took would be answered by nobody.
    pub fn allowed(&self, purpose: Purpose) -> Vec<String> {
        match purpose {
            Purpose::Mail | Purpose::Continue => {
                self.built_in.iter().chain(&self.mcp).cloned().collect()
            }
            Purpose::Checkpoint | Purpose::Compact => {
                BUILT_IN.into_iter().map(str::to_owned).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m15_t21_a_checkpoint_has_files_only() {
        let lists = ToolLists {
            built_in: vec!["Read".to_owned(), "WebFetch".to_owned()],
            mcp: vec!["mcp__hyperhive".to_owned()],
        };
        assert_eq!(
            lists.allowed(Purpose::Mail),
            ["Read", "WebFetch", "mcp__hyperhive"]
        );
        assert_eq!(
            lists.allowed(Purpose::Continue),
            lists.allowed(Purpose::Mail)
        );
        for purpose in [Purpose::Checkpoint, Purpose::Compact] {
            assert_eq!(lists.allowed(purpose), BUILT_IN);
        }
    }
}
