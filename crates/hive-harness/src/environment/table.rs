//! The table of variables: what `docs/environment.md` lists and what the reader takes its defaults
//! from.

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name; `<KEY>` stands for any ending.
    pub name: &'static str,
    /// What is taken when it is unset or empty; empty for nothing.
    pub default: &'static str,
    /// What it says, in one line.
    pub meaning: &'static str,
}

const fn var(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable {
        name,
        default,
        meaning,
    }
}

/// Every variable that `hive` reads.
#[rustfmt::skip]
pub const VARIABLES: &[Variable] = &[
    var("HIVE_SOCKET", "/run/hive/mcp.sock", "the agent's socket; all that `hive mcp` and `hive wake` need"),
    var("HIVE_STATE_DIR", "/state", "the agent's own directory and the cwd of every turn; the parent's cwd is used when it is not there"),
    var("HIVE_HARNESS_DIR", "/harness", "the harness's own directory: on-boot files, model file, lock"),
    var("HIVE_LABEL", "hive", "the agent's name in its prompt"),
    var("HIVE_DOMAIN", "", "the hive's domain; makes the agent's address `label@domain`"),
    var("HIVE_NAME", "", "the hive's name in the prompt"),
    var("HIVE_SWARM", "", "the swarm's name in the prompt"),
    var("HIVE_ROLE", "agent", "`manager` for the root agent: the prompt then holds the manager's policy"),
    var("HIVE_OPERATOR_PRONOUNS", "she/her", "how the prompt speaks of the operator"),
    var("HIVE_PORT", "", "the port of the agent's page, which the host serves"),
    var("HIVE_DASHBOARD_PORT", "", "the port of the dashboard, which the host serves"),
    var("HIVE_TOOL_GROUPS", "messaging,meta,inbox,execution", "the tool groups of the agent, separated by commas"),
    var("HIVE_ENGINE", "claude", "the engine: a program and its first arguments, separated by spaces"),
    var("HIVE_ENGINE_ENV_<NAME>", "", "the engine, and nothing else, gets this as variable NAME"),
    var("HIVE_ENGINE_LINGER_SECS", "0", "how long a warm engine stays after a turn; 0 is one process per turn"),
    var("HIVE_ENGINE_SILENCE_SECS", "420", "how long the engine may say nothing before it is killed"),
    var("HIVE_ENGINE_EXIT_SECS", "30", "how long the engine may live on after its result before it is killed"),
    var("HIVE_ENGINE_KILL_SECS", "3", "how long the engine may take to end after SIGTERM before SIGKILL"),
    var("HIVE_GATEWAY_SOCKET", "", "the host's gateway, which holds the keys; without it the engine goes to its model by itself"),
    var("HIVE_GATEWAY_APIS", "anthropic", "which APIs the engine finds there: `anthropic`, `openai` or both"),
    var("HIVE_NETWORK", "host", "what the agent reaches besides: `gateway` sets the proxy variables to the host's egress proxy"),
    var("HIVE_CONSENT_SECS", "0", "how long the operator has to permit a call that the engine's rules leave open; 0: nobody is asked, and it is refused"),
    var("HIVE_DEFAULT_MODEL", "haiku", "the model until the operator chooses another"),
    var("HYPERHIVE_MODEL_FILE", "", "where the operator's choice is kept; `hyperhive-model` in the harness directory unless set"),
    var("HIVE_CONTEXT_WINDOW_TOKENS", "200000", "the context window of models that no key matches"),
    var("HIVE_CONTEXT_WINDOW_TOKENS_<KEY>", "", "the context window of models whose name holds KEY, in any case; the longest key wins"),
    var("HIVE_COMPACT_WATERMARK_TOKENS", "", "compact from this context size on; 75 % of the window unless set, 0 never"),
    var("HIVE_AUTO_RESET_WATERMARK_TOKENS", "", "begin a new session after a long pause from this context size on; 50 % of the window unless set, 0 never"),
    var("HIVE_CACHE_TTL_SECS", "3600", "what counts as a long pause"),
    var("HIVE_POLL_MS", "10", "the pause after every turn"),
    var("HIVE_RATE_LIMIT_SLEEP_SECS", "300", "how long to wait for a rate limit that states no reset"),
    var("HIVE_RATE_LIMIT_HORIZON_SECS", "86400", "the longest wait for a stated reset; then one turn probes"),
    var("HIVE_UNAVAILABLE_FIRST_MS", "2000", "the first pause when the model's service is not to be had; it doubles"),
    var("HIVE_UNAVAILABLE_LONGEST_SECS", "300", "the longest such pause"),
    var("HIVE_STOP_GRACE_SECS", "10", "how long a running turn may take to end when the harness stops"),
    var("HIVE_LOGIN_COMMAND", "", "what runs a login: a program and its arguments, separated by spaces; the engine with `auth login` unless set"),
    var("HIVE_LOGIN_LOOK_MS", "1000", "how often to look at the credentials while waiting for a login"),
    var("HIVE_EXTRA_MCP", "", "a JSON file with further MCP servers"),
    var("HIVE_AGENTS_DIR", "/agents", "where the root agent finds every agent's proposed configuration"),
    var("HIVE_DASHBOARD_LINKS", "", "the links of the agent's card and page, as a JSON list; written to `hyperhive-dashboard-links.json` in the state directory at boot"),
    var("HIVE_CLAUDE_MARKETPLACES", "", "where plugins of Claude Code come from, as a JSON list"),
    var("HIVE_CLAUDE_PLUGINS", "", "plugins of Claude Code that are installed at boot, as a JSON list"),
    var("HIVE_CLAUDE_PLUGINS_AUTO_UPDATE", "0", "1 updates the marketplaces before that"),
    var("HIVE_BASH_MCP", "hive-bash-mcp", "the stdio bridge of the background shell; left out when it is not there"),
    var("HIVE_BASH_DAEMON", "hive-bash-daemon", "the daemon of the background shell, looked for beside `hive` and in PATH; not started when it is not there"),
    var("HIVE_BASH_SOCKET", "", "where that daemon listens; `bash.sock` in the harness directory unless set"),
    var("HIVE_EVENT_BUFFER_BYTES", "4194304", "the most bytes of events kept while the host is away"),
    var("HIVE_LOG", "info", "what is logged: error, warn, info, debug or trace"),
    var("CLAUDE_CONFIG_DIR", "", "where the engine keeps its credentials; `.claude` in HOME unless set"),
    var("HOME", "", "the home directory, for the credentials"),
];

/// The default of a variable of the table.
pub(super) fn default_of(name: &str) -> &'static str {
    let found = VARIABLES.iter().find(|variable| variable.name == name);
    found
        .expect("every variable that is read is in the table")
        .default
}
