//! `claude-settings.json`: the hive compacts by itself, keeps notes in files, and has no shell of
//! the engine's own (T26, M15).

use hive_mcp::groups::{Group, Groups};
use serde_json::{Value, json};

use super::tools::{DENIED, WEB};

/// The settings of an agent with these groups.
pub fn settings(groups: &Groups) -> Value {
    let mut denied = DENIED.to_vec();
    if !groups.has(Group::WebTools) {
        denied.extend(WEB);
    }
    json!({
        "autoCompactEnabled": false,
        "autoMemoryEnabled": false,
        "effortLevel": "medium",
        "permissions": { "deny": denied },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m15_web_tools_are_denied_without_their_group() {
        let (with, _) = Groups::parse("web_tools");
        let denied = |groups: &Groups| settings(groups)["permissions"]["deny"].to_string();
        assert!(!denied(&with).contains("Web"));
        assert!(denied(&with).contains("\"Bash\""));
        assert!(denied(&Groups::default()).contains("\"WebFetch\""));
    }
}
