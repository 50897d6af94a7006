//! What a configuration comes to: variables of the harness, and the file of further MCP servers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{AgentConfig, McpServer};

/// What the variables also depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    /// Where the agent finds the file of further MCP servers.
    pub(crate) extra_mcp: &'a str,
    /// Where it finds the files of its page.
    pub(crate) static_dir: Option<&'a str>,
}

/// The variables that an agent's configuration sets.
pub(crate) fn environment(config: &AgentConfig, around: Around<'_>) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = config
        .env
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let mut set = |name: &str, value: String| {
        env.insert(name.to_owned(), value);
    };
    if let Some(name) = &config.hive_name {
        set("HIVE_NAME", name.to_string());
    }
    if let Some(name) = &config.swarm_name {
        set("HIVE_SWARM", name.to_string());
    }
    if !config.auto_compact.0 {
        set("HIVE_COMPACT_WATERMARK_TOKENS", "0".to_owned());
    }
    if !config.cargo.short_messages.0 {
        set("HIVE_CARGO_SHORT_MESSAGES", "0".to_owned());
    }
    set("HIVE_FORGE_URL", config.forge.url.as_str().to_owned());
    set("HIVE_MATRIX_URL", config.matrix.url.as_str().to_owned());
    if !config.mcp_servers.is_empty() {
        set("HIVE_EXTRA_MCP", around.extra_mcp.to_owned());
    }
    if let Some(dir) = around.static_dir {
        set("HIVE_STATIC_DIR", dir.to_owned());
    }
    if !config.dashboard_links.is_empty() {
        set("HIVE_DASHBOARD_LINKS", links(config).to_string());
    }
    if !config.claude_plugins.is_empty() {
        let list = |lines: &[super::Line]| {
            let lines: Vec<&str> = lines.iter().map(super::Line::as_str).collect();
            json!(lines).to_string()
        };
        set("HIVE_CLAUDE_PLUGINS", list(&config.claude_plugins));
        set(
            "HIVE_CLAUDE_MARKETPLACES",
            list(&config.claude_marketplaces.0),
        );
        if config.claude_plugins_auto_update {
            set("HIVE_CLAUDE_PLUGINS_AUTO_UPDATE", "1".to_owned());
        }
    }
    env
}

fn links(config: &AgentConfig) -> Value {
    let link = |link: &super::DashboardLink| {
        json!({
            "label": link.label.as_str(),
            "url": link.url.as_str(),
            "icon": link.icon.as_ref().map_or("", super::Line::as_str),
        })
    };
    config.dashboard_links.iter().map(link).collect()
}

/// The file of further MCP servers, as the harness reads it; `None` when there are none.
pub(crate) fn extra_mcp(config: &AgentConfig) -> Option<Value> {
    if config.mcp_servers.is_empty() {
        return None;
    }
    let servers: Map<String, Value> = config
        .mcp_servers
        .iter()
        .map(|(name, server)| (name.as_str().to_owned(), server_json(server)))
        .collect();
    Some(json!({ "mcpServers": servers }))
}

fn server_json(server: &McpServer) -> Value {
    let mut json = match (&server.command, &server.url) {
        (_, Some(url)) => json!({"type": "http", "url": url.as_str()}),
        (command, None) => {
            let env: BTreeMap<&str, &str> = server
                .env
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            json!({
                "type": "stdio",
                "command": command.as_ref().map_or("", super::Line::as_str),
                "args": server.args,
                "env": env,
            })
        }
    };
    if let Some(tools) = &server.allowed_tools {
        let tools: Vec<&str> = tools.iter().map(super::ToolName::as_str).collect();
        json["allowedTools"] = json!(tools);
    }
    json
}
