//! `claude-mcp-config.json`: this binary again as `hive mcp`, the background shell where it is
//! installed, and the servers that the agent's configuration adds (T26, M13, B5).

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{environment::Environment, files, program};

/// The hive's own server: its tools are `mcp__hyperhive__…`.
pub const HYPERHIVE: &str = "hyperhive";
/// The background shell: `mcp__bash__…`.
pub const BASH: &str = "bash";
/// The most bytes of the file with further servers.
const MAX_EXTRA: u64 = 256 * 1024;

/// The MCP servers of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct McpConfig {
    servers: Map<String, Value>,
    allowed: Vec<String>,
}

/// The file with further servers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extra {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, ExtraServer>,
}

/// A further server: how to reach it, and which of its tools may be used.
#[derive(Debug, Deserialize)]
struct ExtraServer {
    /// Its tools that may be used without asking; all of them unless given.
    #[serde(rename = "allowedTools")]
    allowed_tools: Option<Vec<String>>,
    #[serde(flatten)]
    how: Map<String, Value>,
}

impl McpConfig {
    /// The servers of this agent.
    ///
    /// # Errors
    /// When the file with further servers makes no sense.
    pub fn build(environment: &Environment, hive: &Path) -> anyhow::Result<Self> {
        let mut config = Self {
            servers: Map::new(),
            allowed: Vec::new(),
        };
        config.add(HYPERHIVE, hyperhive(environment, hive));
        let places = &environment.places;
        if let Some(bridge) = program::find(&places.bash_mcp) {
            let server = json!({
                "type": "stdio",
                "command": bridge,
                "args": [],
                "env": {
                    "HIVE_BASH_SOCKET": places.bash_socket,
                    "HIVE_HARNESS_DIR": places.harness,
                },
            });
            config.add(BASH, server);
        }
        if let Some(path) = &places.extra_mcp {
            config
                .add_extra(path)
                .with_context(|| format!("the extra MCP servers in {}", path.display()))?;
        }
        Ok(config)
    }

    /// The file's content.
    pub fn json(&self) -> Value {
        json!({ "mcpServers": self.servers })
    }

    /// What goes on the list of allowed tools.
    pub fn allowed(&self) -> Vec<String> {
        self.allowed.clone()
    }

    fn add(&mut self, name: &str, server: Value) {
        self.servers.insert(name.to_owned(), server);
        self.allowed.push(format!("mcp__{name}"));
    }

    fn add_extra(&mut self, path: &Path) -> anyhow::Result<()> {
        let text = files::read_capped(path, MAX_EXTRA)?.context("there is no such file")?;
        ensure!(!text.is_cut, "it is longer than {} KiB", MAX_EXTRA / 1024);
        let extra: Extra = serde_json::from_str(&text.text)?;
        for (name, server) in extra.servers {
            self.add_extra_server(&name, server)
                .with_context(|| format!("server `{name}`"))?;
        }
        Ok(())
    }

    fn add_extra_server(&mut self, name: &str, server: ExtraServer) -> anyhow::Result<()> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        // Two underscores end a server's name in the names of its tools.
        ensure!(
            (1..=64).contains(&name.len()) && name.chars().all(legal) && !name.contains("__"),
            "a name has 1 to 64 letters, digits, `-` and single `_`"
        );
        ensure!(
            !self.servers.contains_key(name),
            "this name is taken by the hive itself"
        );
        let is_text = |key: &str| server.how.get(key).is_some_and(Value::is_string);
        if !is_text("command") && !is_text("url") {
            bail!("it has neither a `command` nor a `url`");
        }
        match server.allowed_tools {
            None => self.allowed.push(format!("mcp__{name}")),
            Some(tools) => {
                for tool in tools {
                    ensure!(
                        (1..=128).contains(&tool.len()) && tool.chars().all(legal),
                        "`{tool}` in allowedTools is no tool's name"
                    );
                    self.allowed.push(format!("mcp__{name}__{tool}"));
                }
            }
        }
        self.servers
            .insert(name.to_owned(), Value::Object(server.how));
        Ok(())
    }
}

fn hyperhive(environment: &Environment, hive: &Path) -> Value {
    json!({
        "type": "stdio",
        "command": hive,
        "args": ["mcp"],
        "env": {
            "HIVE_SOCKET": environment.socket,
            "HIVE_STATE_DIR": environment.places.state,
            "HIVE_HARNESS_DIR": environment.places.harness,
            "HIVE_TOOL_GROUPS": environment.tool_groups.join(),
            "HIVE_CONSENT_SECS": environment.engine.consent.as_secs().to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(extra: &str) -> anyhow::Result<McpConfig> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("extra.json");
        std::fs::write(&file, extra)?;
        let bash = dir.path().join("hive-bash-mcp");
        std::fs::write(&bash, "")?;
        let environment = Environment::read(vec![
            ("HIVE_EXTRA_MCP".into(), file.into()),
            ("HIVE_BASH_MCP".into(), bash.into()),
        ])?;
        McpConfig::build(&environment, Path::new("/bin/hive"))
    }

    #[test]
    fn m13_b5_extra_servers_and_bash_join_the_hives_own() {
        let config = build(
            r#"{"mcpServers":{
                "docs":{"command":"docs-mcp","args":["-q"],"env":{"A":"b"}},
                "web":{"type":"http","url":"http://127.0.0.1:1/","allowedTools":["find","get"]}}}"#,
        )
        .unwrap();
        let json = config.json();
        let servers = json["mcpServers"].as_object().unwrap();
        let mut names: Vec<_> = servers.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["bash", "docs", "hyperhive", "web"]);
        assert_eq!(servers["docs"]["args"], json!(["-q"]));
        assert_eq!(
            servers["web"].get("allowedTools"),
            None,
            "the engine does not know it"
        );
        assert_eq!(
            config.allowed(),
            [
                "mcp__hyperhive",
                "mcp__bash",
                "mcp__docs",
                "mcp__web__find",
                "mcp__web__get"
            ]
        );
    }

    #[test]
    fn m13_bad_extra_servers_are_refused_with_their_name() {
        let cases = [
            ("not json", "expected"),
            (r#"{"servers":{}}"#, "unknown field"),
            (
                r#"{"mcpServers":{"hyperhive":{"command":"evil"}}}"#,
                "taken",
            ),
            (r#"{"mcpServers":{"a__b":{"command":"x"}}}"#, "a name has"),
            (r#"{"mcpServers":{"../x":{"command":"x"}}}"#, "a name has"),
            (r#"{"mcpServers":{"x":{"args":[]}}}"#, "neither"),
            (r#"{"mcpServers":{"x":{"command":5}}}"#, "neither"),
            (
                r#"{"mcpServers":{"x":{"command":"y","allowedTools":["a,Bash"]}}}"#,
                "a,Bash",
            ),
        ];
        for (extra, wanted) in cases {
            let error = format!("{:#}", build(extra).unwrap_err());
            assert!(error.contains(wanted), "{extra}: {error}");
        }
    }

    #[test]
    fn the_docs_name_every_variable_that_the_server_is_given() {
        let docs = include_str!("../../../../docs/environment.md");
        let mut paragraphs = docs.split("\n\n");
        let given = paragraphs
            .find(|text| text.contains("the MCP server is given"))
            .unwrap();
        let config = build(r#"{"mcpServers":{}}"#).unwrap().json();
        let env = config["mcpServers"][HYPERHIVE]["env"].as_object().unwrap();
        for name in env.keys() {
            assert!(given.contains(&format!("`{name}`")), "{name}: {given}");
        }
    }
}
