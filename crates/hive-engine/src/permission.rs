//! Whether a call may run: rules, mode and role decide; where they leave it open, someone is asked.
//!
//! The order is fixed. A deny rule wins over everything, then an ask rule, then the role, then what
//! nobody wants to happen by accident, then allow rules and the mode. A shell command is permitted
//! only if each part of it is, and if no part of it is in doubt.

mod decide;
mod globs;
mod mode;
mod pattern;
mod protected;
mod risk;
mod role;
mod rules;

pub use decide::{Call, Decision, Policy, Why};
pub use mode::Mode;
pub use risk::{Risk, classify};
pub use role::{Role, RoleVerdict};
pub use rules::{Effect, Origin, Reader as RuleReader, Rule, RuleError, Rules};

/// The one table of tool names: what the seed and other systems call them, and what we call them.
pub const ALIASES: &[(&str, &str)] = &[
    ("read_file", "Read"),
    ("write_file", "Write"),
    ("list_directory", "LS"),
    ("execute_bash", "Bash"),
    ("run_command", "Bash"),
    ("ripgrep_search", "Grep"),
    ("search", "Grep"),
    ("file_search", "Glob"),
    ("replace_in_file", "Edit"),
    ("apply_diff", "ApplyDiff"),
    ("fetch", "WebFetch"),
    ("navigate", "browser_navigate"),
    ("click", "browser_click"),
    ("screenshot", "browser_screenshot"),
    ("commit", "git_commit"),
    ("push", "git_push"),
    ("checkout", "git_checkout"),
    ("status", "git_status"),
    ("diff", "git_diff"),
    ("log", "git_log"),
];

/// Our name of a tool that may be called otherwise.
pub fn canonical(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("mcp://") {
        let (server, tool) = rest.split_once('/').unwrap_or((rest, "*"));
        return format!("mcp__{server}__{tool}");
    }
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or_else(|| name.to_owned(), |(_, ours)| (*ours).to_owned())
}
