//! Every option of an agent in one table: its names, its default, what it means.

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentOption {
    /// Its name in `agent.toml`; `*` stands for a name that the user chooses.
    pub toml: &'static str,
    /// What it is.
    pub kind: &'static str,
    /// What it is unless set, as `agent.toml` writes it; empty for nothing.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

impl AgentOption {
    /// Its name in `agent.nix`, beneath `hyperhive`: the same words in camel case.
    pub fn nix(&self) -> String {
        let mut name = String::new();
        let mut upper = false;
        for c in self.toml.chars() {
            match c {
                '_' => upper = true,
                _ if upper => {
                    name.push(c.to_ascii_uppercase());
                    upper = false;
                }
                _ => name.push(c),
            }
        }
        name
    }
}

const fn option(
    toml: &'static str,
    kind: &'static str,
    default: &'static str,
    about: &'static str,
) -> AgentOption {
    AgentOption {
        toml,
        kind,
        default,
        about,
    }
}

/// Every option, in the order in which docs list them.
pub const OPTIONS: &[AgentOption] = &[
    option(
        "model",
        "text",
        "",
        "the model, until the operator chooses another with `model`; `[agents] model` of hive.toml unless set",
    ),
    option(
        "engine",
        "text",
        "",
        "`auto`, `claude`, `native` or a command; `[engine] default` of hive.toml unless set",
    ),
    option(
        "runtime",
        "`auto`, `process`, `bwrap`, `nspawn`, `podman` or `nixos`",
        "\"auto\"",
        "where it runs; it is set when the agent is made, and a commit cannot change it",
    ),
    option(
        "auto_compact",
        "boolean",
        "true",
        "whether the session is compacted before it is full; a full one always is",
    ),
    option(
        "hive_name",
        "text",
        "",
        "the hive's name in its prompt, instead of hive.toml's; at most 200 bytes",
    ),
    option(
        "swarm_name",
        "text",
        "",
        "the swarm's name in its prompt, instead of hive.toml's; at most 200 bytes",
    ),
    option(
        "icon",
        "path of an SVG in the repository",
        "",
        "the sign on its page and its card; the hive's mark unless set",
    ),
    option(
        "allowed_recipients",
        "list of names",
        "[]",
        "whom it may write to; everybody when empty. Whoever is above it is always reachable",
    ),
    option(
        "network",
        "`auto`, `gateway`, `none` or `host`",
        "\"auto\"",
        "what it reaches: the model and the world through the host's proxy, the model alone, or all that the host reaches",
    ),
    option(
        "tool_groups",
        "list of words",
        "[]",
        "tool groups that it asks for; the operator grants them with `permissions`",
    ),
    option(
        "capabilities",
        "list of words",
        "[]",
        "capabilities that it asks for; the operator grants them with `permissions`",
    ),
    option(
        "claude_marketplaces",
        "list of texts",
        "[\"anthropics/claude-plugins-official\"]",
        "where plugins of Claude Code come from",
    ),
    option(
        "claude_plugins",
        "list of texts",
        "[]",
        "plugins that are installed at every boot; skipped with a note on other engines",
    ),
    option(
        "claude_plugins_auto_update",
        "boolean",
        "false",
        "whether the marketplaces are updated before that",
    ),
    option(
        "dashboard_links.*.label",
        "text",
        "",
        "a link on its card and its page: what it says",
    ),
    option(
        "dashboard_links.*.url",
        "http(s) address",
        "",
        "where it leads",
    ),
    option("dashboard_links.*.icon", "text", "", "a sign before it"),
    option(
        "env.*",
        "text",
        "",
        "a variable of its environment, for background commands and MCP servers; none that the hive sets, and none that leads engines or keys elsewhere",
    ),
    option(
        "frontend.dist",
        "path of a directory in the repository",
        "",
        "replaces its page; it holds an `index.html`",
    ),
    option(
        "frontend.extra_files.*.source",
        "path in the repository",
        "",
        "a file or directory that its page's port serves besides",
    ),
    option(
        "frontend.extra_files.*.target",
        "path",
        "",
        "what it is served under; its name in this table unless set",
    ),
    option(
        "forge.url",
        "http(s) address or nothing",
        "\"http://localhost:3000\"",
        "the forge that its tools use",
    ),
    option(
        "matrix.url",
        "http(s) address or nothing",
        "\"http://localhost:8008\"",
        "the Matrix homeserver that it uses",
    ),
    option(
        "cargo.short_messages",
        "boolean",
        "true",
        "whether cargo prints short messages in background commands",
    ),
    option(
        "user.name",
        "word",
        "",
        "the name of its unix user; the agent's own unless set",
    ),
    option(
        "user.uid",
        "number from 1000",
        "",
        "the number of its unix user; chosen by the host unless set",
    ),
    option(
        "user.gid",
        "number from 1000",
        "",
        "the number of its group; that of the user unless set",
    ),
    option(
        "user.passwordless_sudo",
        "boolean",
        "true",
        "whether it may become root inside; only in `nixos` and booted `nspawn` containers, which have a root of their own",
    ),
    option(
        "mcp_servers.*.command",
        "text",
        "",
        "a further MCP server: the program that is it",
    ),
    option("mcp_servers.*.args", "list of texts", "[]", "its arguments"),
    option(
        "mcp_servers.*.env.*",
        "text",
        "",
        "a variable of its environment",
    ),
    option(
        "mcp_servers.*.url",
        "http(s) address",
        "",
        "where it is reached, instead of `command`",
    ),
    option(
        "mcp_servers.*.allowed_tools",
        "list of names",
        "",
        "its tools that may be used; all of them unless set",
    ),
    option(
        "mounts.*.source",
        "absolute path",
        "",
        "a directory of the host that it sees; nothing of the hive's own",
    ),
    option(
        "mounts.*.target",
        "absolute path",
        "",
        "where; at the same path unless set",
    ),
    option(
        "mounts.*.writable",
        "boolean",
        "false",
        "whether it may change it",
    ),
    option(
        "limits.memory_mib",
        "number",
        "",
        "memory of all of its processes, in MiB",
    ),
    option("limits.pids", "number", "", "processes and threads"),
    option(
        "limits.cpu_percent",
        "number",
        "",
        "processor time, in hundredths of a processor",
    ),
    option(
        "limits.file_mib",
        "number",
        "",
        "the largest single file, in MiB",
    ),
    option(
        "budget.tokens",
        "number",
        "",
        "what it may use in a day, in tokens of every kind",
    ),
    option(
        "budget.usd",
        "number",
        "",
        "what it may spend in a day, in US dollars",
    ),
];

/// The table of docs/configuration.md.
pub fn table() -> String {
    let mut table = String::from(
        "| `agent.toml` | `agent.nix` | kind | default | meaning |\n|---|---|---|---|---|\n",
    );
    for option in OPTIONS {
        let default = match option.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        table.push_str(&format!(
            "| `{}` | `hyperhive.{}` | {} | {default} | {} |\n",
            option.toml,
            option.nix(),
            option.kind,
            option.about
        ));
    }
    table
}
