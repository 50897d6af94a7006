//! `agent.toml`: what an agent is and may do, as its operator approved it (T29).
//!
//! Everything is optional, a word that means nothing is an error with its line, and what cannot be
//! right is refused before anybody is asked to approve it. [`OPTIONS`] describes every option;
//! `docs/configuration.md` and the NixOS module are checked against it.
//!
//! Tool groups and capabilities are requests only: what an agent may do is the operator's to set,
//! and no commit changes it (C14).

mod applied;
mod env;
mod options;
mod values;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, bail, ensure};
use hive_wire::{
    host::{Network, Runtime},
    text,
};
use serde::Deserialize;

use crate::repos::Tree;

pub(crate) use applied::Configs;
pub(crate) use env::{Around, environment, extra_mcp};
pub use options::{AgentOption, OPTIONS, table};
pub(crate) use values::{
    EnvName, HttpUrl, Line, ModelName, MountPath, Name, RepoPath, ServerName, Target, ToolName,
    UserName, Word,
};

/// The file of a configuration.
pub(crate) const AGENT_TOML: &str = "agent.toml";
/// The same on NixOS.
pub(crate) const AGENT_NIX: &str = "agent.nix";
/// The largest icon.
const MAX_ICON: usize = 256 * 1024;
/// The most entries of any list.
const MAX_LIST: usize = 100;

/// An agent's whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// Which model it uses.
    pub(crate) model: Option<ModelName>,
    /// What runs its turns.
    pub(crate) engine: Option<Line>,
    /// Where it runs.
    pub(crate) runtime: Runtime,
    /// Whether its session is compacted before it is full.
    pub(crate) auto_compact: Yes,
    /// The hive's name in its prompt.
    pub(crate) hive_name: Option<Name>,
    /// The swarm's name in its prompt.
    pub(crate) swarm_name: Option<Name>,
    /// The SVG of its page.
    pub(crate) icon: Option<RepoPath>,
    /// Whom it may write to; everybody when empty.
    pub(crate) allowed_recipients: Vec<Word>,
    /// What it reaches of the network; what `hive.toml` says when it is `auto`.
    pub(crate) network: Network,
    /// Tool groups that it asks for.
    pub(crate) tool_groups: Vec<Word>,
    /// Capabilities that it asks for.
    pub(crate) capabilities: Vec<Word>,
    /// Sources of plugins.
    pub(crate) claude_marketplaces: Marketplaces,
    /// Plugins of Claude Code.
    pub(crate) claude_plugins: Vec<Line>,
    /// Whether sources of plugins are updated at every boot.
    pub(crate) claude_plugins_auto_update: bool,
    /// Links on its card and its page.
    pub(crate) dashboard_links: Vec<DashboardLink>,
    /// Further variables of its environment.
    pub(crate) env: BTreeMap<EnvName, Line>,
    /// Its page.
    pub(crate) frontend: Frontend,
    /// The forge.
    pub(crate) forge: Forge,
    /// The Matrix homeserver.
    pub(crate) matrix: Matrix,
    /// What cargo says.
    pub(crate) cargo: Cargo,
    /// Who it is inside.
    pub(crate) user: User,
    /// Further MCP servers.
    pub(crate) mcp_servers: BTreeMap<ServerName, McpServer>,
    /// Directories of the host.
    pub(crate) mounts: Vec<Mount>,
    /// How much it may use.
    pub(crate) limits: Limits,
    /// How much it may spend in a day.
    pub(crate) budget: Budget,
}

/// A switch that is on unless it is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Yes(pub(crate) bool);

impl Default for Yes {
    fn default() -> Self {
        Self(true)
    }
}

/// Sources of plugins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Marketplaces(pub(crate) Vec<Line>);

impl Default for Marketplaces {
    fn default() -> Self {
        let official = "anthropics/claude-plugins-official".parse();
        Self(official.into_iter().collect())
    }
}

/// A link on an agent's card and page (T31).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DashboardLink {
    /// What it says.
    pub(crate) label: Line,
    /// Where it leads.
    pub(crate) url: HttpUrl,
    /// A sign before it.
    #[serde(default)]
    pub(crate) icon: Option<Line>,
}

/// An agent's page (T32).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Frontend {
    /// A directory that replaces the page.
    pub(crate) dist: Option<RepoPath>,
    /// Further files, by the name they are served under.
    pub(crate) extra_files: BTreeMap<Target, ExtraFile>,
}

/// A further file or directory of a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtraFile {
    /// Where it lies in the repository.
    pub(crate) source: RepoPath,
    /// What it is served under, instead of its own name in this table.
    #[serde(default)]
    pub(crate) target: Option<Target>,
}

/// Where the forge is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Forge {
    /// Its address, or nothing.
    pub(crate) url: values::HttpUrlOrNone,
}

impl Default for Forge {
    fn default() -> Self {
        Self {
            url: values::HttpUrlOrNone::of("http://localhost:3000"),
        }
    }
}

/// Where the Matrix homeserver is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Matrix {
    /// Its address, or nothing.
    pub(crate) url: values::HttpUrlOrNone,
}

impl Default for Matrix {
    fn default() -> Self {
        Self {
            url: values::HttpUrlOrNone::of("http://localhost:8008"),
        }
    }
}

/// What cargo says in background commands (T34).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cargo {
    /// Whether it is kept short.
    pub(crate) short_messages: Yes,
}

/// Who an agent is inside its container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct User {
    /// The name of its unix user; its own unless given.
    pub(crate) name: Option<UserName>,
    /// Its number; chosen by the host unless given.
    pub(crate) uid: Option<values::Id>,
    /// The number of its group; the same as `uid` unless given.
    pub(crate) gid: Option<values::Id>,
    /// Whether it may become root inside, where the runtime has a root of its own.
    pub(crate) passwordless_sudo: Yes,
}

/// A further MCP server (M13): a command, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpServer {
    /// The program that is it.
    #[serde(default)]
    pub(crate) command: Option<Line>,
    /// Its arguments.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Its environment.
    #[serde(default)]
    pub(crate) env: BTreeMap<EnvName, Line>,
    /// Where it is reached over HTTP.
    #[serde(default)]
    pub(crate) url: Option<HttpUrl>,
    /// Its tools that may be used; all of them unless given.
    #[serde(default)]
    pub(crate) allowed_tools: Option<Vec<ToolName>>,
}

/// A directory of the host that an agent sees.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mount {
    /// Where it lies on the host.
    pub(crate) source: MountPath,
    /// Where the agent sees it; at the same path unless given.
    #[serde(default)]
    pub(crate) target: Option<MountPath>,
    /// Whether it may change it.
    #[serde(default)]
    pub(crate) writable: bool,
}

/// How much an agent may use; what is not set is as `hive.toml` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Memory of all of its processes, in mebibytes.
    pub(crate) memory_mib: Option<values::Positive>,
    /// Processes and threads.
    pub(crate) pids: Option<values::Positive>,
    /// Processor time, in hundredths of a processor.
    pub(crate) cpu_percent: Option<values::Positive>,
    /// The largest single file, in mebibytes.
    pub(crate) file_mib: Option<values::Positive>,
}

/// What an agent may spend in a day; what is not set is as `hive.toml` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Budget {
    /// Tokens of every kind together.
    pub(crate) tokens: Option<u64>,
    /// US dollars.
    pub(crate) usd: Option<values::Dollars>,
}

/// What a repository says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared {
    /// An `agent.toml`; with an `agent.nix` beside it, of which the host reads nothing.
    Toml(Box<AgentConfig>),
    /// An `agent.nix` alone, which only NixOS can read: nothing in it is the host's to enforce.
    Nix,
}

impl Declared {
    /// The options as far as the host knows them.
    pub(crate) fn config(&self) -> AgentConfig {
        match self {
            Self::Toml(config) => (**config).clone(),
            Self::Nix => AgentConfig {
                runtime: Runtime::Nixos,
                ..AgentConfig::default()
            },
        }
    }
}

/// Reads the configuration of a repository. `root` is the hive's own directory, which no agent
/// sees.
///
/// # Errors
/// With the file, the line and what would be right.
pub(crate) fn read(tree: &Tree, root: &Path) -> anyhow::Result<Declared> {
    match (tree.get(AGENT_TOML), tree.get(AGENT_NIX)) {
        (None, None) => bail!("there is no {AGENT_TOML}"),
        (None, Some(_)) => Ok(Declared::Nix),
        (Some(file), nix) => {
            ensure!(
                file.content.len() <= hive_wire::approval::MAX_AGENT_CONFIG,
                "{AGENT_TOML} has more than {} KiB",
                hive_wire::approval::MAX_AGENT_CONFIG >> 10
            );
            let text = std::str::from_utf8(&file.content)
                .with_context(|| format!("{AGENT_TOML} is no text"))?;
            let mut config =
                AgentConfig::parse(text).with_context(|| format!("in {AGENT_TOML}"))?;
            if nix.is_some() {
                ensure!(
                    [Runtime::Auto, Runtime::Nixos].contains(&config.runtime),
                    "{AGENT_NIX} is for the runtime `nixos`, and {AGENT_TOML} says `{}`",
                    config.runtime.as_str()
                );
                config.runtime = Runtime::Nixos;
            }
            config.check_files(tree)?;
            config.check_mounts(root)?;
            Ok(Declared::Toml(Box::new(config)))
        }
    }
}

/// The first `agent.toml` of an agent.
pub(crate) fn first(name: &str, wishes: &[(&str, &str)]) -> String {
    let mut text = format!(
        "# What `{name}` is and may do; docs/configuration.md lists every option.\n\
         # A change takes effect when the operator has approved its commit.\n"
    );
    for (key, value) in wishes {
        let value = toml::Value::String((*value).to_owned());
        text.push_str(&format!("{key} = {value}\n"));
    }
    text
}

impl AgentConfig {
    /// Reads the text of an `agent.toml`.
    ///
    /// # Errors
    /// With the line and what was probably meant.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let message = error.to_string();
            match crate::config::unknown_field(error.message()) {
                Some(near) => anyhow::anyhow!("{message}did you mean `{near}`?"),
                None => anyhow::anyhow!("{message}"),
            }
        })?;
        config.check()?;
        Ok(config)
    }

    /// What an agent gets whose configuration cannot be read. What it forbade is not known, so that
    /// everything is forbidden that a configuration can forbid.
    pub(crate) fn closed() -> Self {
        let operator = hive_wire::name::OPERATOR.parse();
        Self {
            allowed_recipients: operator.into_iter().collect(),
            network: Network::None,
            user: User {
                passwordless_sudo: Yes(false),
                ..User::default()
            },
            ..Self::default()
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        for (key, length) in [
            ("allowed_recipients", self.allowed_recipients.len()),
            ("claude_marketplaces", self.claude_marketplaces.0.len()),
            ("claude_plugins", self.claude_plugins.len()),
            ("dashboard_links", self.dashboard_links.len()),
            ("env", self.env.len()),
            ("frontend.extra_files", self.frontend.extra_files.len()),
            ("mcp_servers", self.mcp_servers.len()),
            ("mounts", self.mounts.len()),
            ("tool_groups", self.tool_groups.len()),
            ("capabilities", self.capabilities.len()),
        ] {
            ensure!(length <= MAX_LIST, "{key} has more than {MAX_LIST} entries");
        }
        for (name, server) in &self.mcp_servers {
            let ways = usize::from(server.command.is_some()) + usize::from(server.url.is_some());
            ensure!(
                ways == 1,
                "mcp_servers.{name} needs either a `command` or a `url`"
            );
            ensure!(
                server.url.is_none() || (server.args.is_empty() && server.env.is_empty()),
                "mcp_servers.{name} has a `url`, so that `args` and `env` mean nothing"
            );
        }
        let mut targets = BTreeMap::new();
        for (name, file) in &self.frontend.extra_files {
            let target = file.target.as_ref().unwrap_or(name);
            if let Some(other) = targets.insert(target.as_str(), name) {
                bail!("frontend.extra_files: `{other}` and `{name}` are both served as `{target}`");
            }
        }
        Ok(())
    }

    /// What the configuration names has to be in the repository.
    fn check_files(&self, tree: &Tree) -> anyhow::Result<()> {
        if let Some(icon) = &self.icon {
            let file = tree.get(icon.as_str());
            let file = file.with_context(|| format!("icon: there is no file `{icon}`"))?;
            ensure!(
                file.content.len() <= MAX_ICON,
                "icon: `{icon}` has more than {} KiB",
                MAX_ICON >> 10
            );
            let is_svg = std::str::from_utf8(&file.content).is_ok_and(|text| text.contains("<svg"));
            ensure!(is_svg, "icon: `{icon}` is no SVG");
        }
        if let Some(dist) = &self.frontend.dist {
            ensure!(
                tree.get(&format!("{dist}/index.html")).is_some(),
                "frontend.dist: there is no `{dist}/index.html`"
            );
        }
        for (name, file) in &self.frontend.extra_files {
            ensure!(
                tree.has(file.source.as_str()),
                "frontend.extra_files.\"{name}\": there is no `{}`",
                file.source
            );
        }
        Ok(())
    }

    /// An agent sees nothing of the hive's own directory, and nothing over its own places.
    fn check_mounts(&self, root: &Path) -> anyhow::Result<()> {
        for mount in &self.mounts {
            let source = Path::new(mount.source.as_str());
            ensure!(
                !source.starts_with(root) && !root.starts_with(source),
                "mounts: `{}` holds or lies in the hive's own directory",
                mount.source
            );
            let target = mount.target.as_ref().unwrap_or(&mount.source);
            ensure!(
                !values::is_taken(target.as_str()),
                "mounts: `{target}` is a place of the container's own"
            );
        }
        Ok(())
    }

    /// What it asks for and does not get by an approval alone, for the operator to see.
    pub(crate) fn wishes(&self) -> Vec<String> {
        let list = |words: &[Word]| {
            let words: Vec<_> = words.iter().map(Word::as_str).collect();
            words.join(", ")
        };
        let mut wishes = Vec::new();
        for (what, words) in [
            ("tool groups", &self.tool_groups),
            ("capabilities", &self.capabilities),
        ] {
            if !words.is_empty() {
                wishes.push(format!("{what}: {}", text::shorten(&list(words), 500)));
            }
        }
        wishes
    }

    /// Whether it may write to somebody (M2). Whoever is above it is always reachable.
    pub(crate) fn may_write_to(&self, recipient: &str) -> bool {
        let allowed = &self.allowed_recipients;
        allowed.is_empty() || allowed.iter().any(|name| name.as_str() == recipient)
    }
}

#[cfg(test)]
mod tests;
