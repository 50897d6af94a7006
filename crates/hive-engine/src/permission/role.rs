//! Roles: which tools somebody of a certain standing may use at all.

use serde::{Deserialize, Serialize};

use super::{canonical, pattern};

/// A role's two lists. Denied wins; `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Role {
    /// What it is called.
    pub name: String,
    /// Tools that may be used.
    pub allowed: Vec<String>,
    /// Tools that may not.
    #[serde(default)]
    pub denied: Vec<String>,
    /// Whether what may destroy is asked for even when allowed.
    #[serde(default = "yes")]
    pub confirm_destructive: bool,
}

fn yes() -> bool {
    true
}

/// What a role says about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleVerdict {
    /// No objection.
    Allowed,
    /// Ask first.
    Confirm,
    /// Not for this role, with the reason.
    Denied(&'static str),
}

impl Role {
    /// One of the built-in roles.
    pub fn built_in(name: &str) -> Option<Self> {
        let (allowed, denied, confirm): (&[&str], &[&str], bool) = match name {
            "developer" => (
                &[
                    "read_file",
                    "search",
                    "file_search",
                    "list_directory",
                    "run_tests",
                    "git_status",
                    "git_diff",
                    "git_log",
                ],
                &["execute_bash", "write_file", "git_push"],
                true,
            ),
            "senior" => (
                &[
                    "read_file",
                    "search",
                    "file_search",
                    "list_directory",
                    "write_file",
                    "replace_in_file",
                    "apply_diff",
                    "execute_bash",
                    "git_status",
                    "git_diff",
                    "git_log",
                    "git_commit",
                ],
                &["git_push", "delete_file", "modify_settings"],
                true,
            ),
            "admin" => (&["*"], &[], false),
            _ => return None,
        };
        let own = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Some(Self {
            name: name.to_owned(),
            allowed: own(allowed),
            denied: own(denied),
            confirm_destructive: confirm,
        })
    }

    /// What it says about a tool.
    pub fn judge(&self, tool: &str, is_destructive: bool) -> RoleVerdict {
        let names = |list: &[String]| {
            list.iter()
                .any(|name| pattern::glob(&canonical(name), tool))
        };
        if names(&self.denied) {
            return RoleVerdict::Denied("Role restriction");
        }
        if !names(&self.allowed) {
            return RoleVerdict::Denied("Tool not in allowed list");
        }
        if is_destructive && self.confirm_destructive {
            RoleVerdict::Confirm
        } else {
            RoleVerdict::Allowed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_roles() {
        use RoleVerdict::*;
        for (role, tool, destructive, expected) in [
            ("developer", "Read", false, Allowed),
            ("developer", "Bash", true, Denied("Role restriction")),
            ("developer", "Write", true, Denied("Role restriction")),
            (
                "developer",
                "WebFetch",
                false,
                Denied("Tool not in allowed list"),
            ),
            ("senior", "Write", true, Confirm),
            ("senior", "Bash", true, Confirm),
            ("senior", "git_commit", true, Confirm),
            ("senior", "git_push", true, Denied("Role restriction")),
            ("admin", "git_push", true, Allowed),
            ("admin", "mcp__x__y", true, Allowed),
        ] {
            let judged = Role::built_in(role).unwrap().judge(tool, destructive);
            assert_eq!(judged, expected, "{role} {tool}");
        }
        assert!(Role::built_in("root").is_none());
    }
}
