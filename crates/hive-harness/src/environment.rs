//! The environment of `hive`: every variable in one table, read once and strictly.
//!
//! A value that makes no sense ends the start with the variable's name, what was wrong and what
//! would be right: a harness that guesses would run for weeks on the wrong model or the wrong
//! directory. [`VARIABLES`] is the table; `docs/environment.md` is checked against it.

mod read;
mod table;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use thiserror::Error;

use hive_mcp::groups::{Group, Groups};
pub use hive_wire::host::Network;

use crate::{
    compaction::{Watermark, Watermarks},
    window::ContextWindows,
};
use read::Reader;
pub use table::{VARIABLES, Variable};

/// Why a variable was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name}={value:?}: {problem}")]
pub struct EnvironmentError {
    /// The variable.
    pub name: String,
    /// Its value, shortened.
    pub value: String,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

/// Everything that `hive serve` is told from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The agent's socket.
    pub socket: PathBuf,
    /// Where things of the agent and of the harness lie.
    pub places: Places,
    /// Who the agent is.
    pub identity: Identity,
    /// What runs the turns.
    pub engine: EngineSettings,
    /// The way to the host's gateway, where there is one.
    pub gateway: Option<GatewaySettings>,
    /// The model unless the operator chose one.
    pub default_model: String,
    /// How large the context of each model is.
    pub windows: ContextWindows,
    /// When to compact and when to begin a new session.
    pub watermarks: Watermarks,
    /// What the agent may use.
    pub tool_groups: Groups,
    /// Pauses and limits of the loop.
    pub pace: Pace,
    /// The most bytes of events kept while the host is away.
    pub event_buffer: usize,
    /// What runs a login.
    pub login_command: Vec<String>,
    /// Plugins of the engine.
    pub plugins: Plugins,
    /// The links of the agent's card and page, as JSON.
    pub dashboard_links: Option<String>,
}

/// Plugins of Claude Code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plugins {
    /// Where they come from.
    pub marketplaces: Vec<String>,
    /// Which ones.
    pub plugins: Vec<String>,
    /// Whether their sources are updated first.
    pub auto_update: bool,
}

/// Where things lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The agent's own directory: the cwd of every turn.
    pub state: PathBuf,
    /// The harness's own directory: on-boot files, model file, lock.
    pub harness: PathBuf,
    /// Where the operator's choice of a model is kept.
    pub model_file: PathBuf,
    /// Where the engine keeps its credentials.
    pub credentials: PathBuf,
    /// A JSON file with further MCP servers.
    pub extra_mcp: Option<PathBuf>,
    /// The stdio bridge of the background shell; left out of the MCP configuration when it is not
    /// there.
    pub bash_mcp: PathBuf,
    /// The daemon of the background shell; not started when it is not there.
    pub bash_daemon: PathBuf,
    /// Where that daemon listens.
    pub bash_socket: PathBuf,
}

/// Who the agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its short name.
    pub label: String,
    /// The domain of its hive, as in `ada@example.org`.
    pub domain: Option<String>,
    /// The hive's name.
    pub hive_name: Option<String>,
    /// The swarm's name.
    pub swarm_name: Option<String>,
    /// How to speak of the operator.
    pub operator_pronouns: String,
    /// Whether it is the root agent.
    pub is_manager: bool,
    /// The port of its page, served by the host.
    pub port: Option<u16>,
    /// The port of the dashboard, served by the host.
    pub dashboard_port: Option<u16>,
    /// Where the root agent finds the configurations of all agents.
    pub agents_dir: String,
}

/// What runs the turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// Variables that the engine alone gets.
    pub env: Vec<(String, String)>,
    /// How long a warm engine stays after a turn; zero for one process per turn.
    pub linger: Duration,
    /// How long the engine may say nothing.
    pub silence: Duration,
    /// How long it may live on after its result.
    pub exit: Duration,
    /// How long it may take to end after SIGTERM.
    pub kill_grace: Duration,
    /// How long the operator has to permit what its rules leave open; zero when nobody is asked.
    pub consent: Duration,
}

/// The way to the host's gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Its socket.
    pub socket: PathBuf,
    /// Which APIs the engine is led to.
    pub apis: Vec<Api>,
    /// What the agent reaches besides.
    pub network: Network,
}

/// A family of model APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI-compatible chat completions.
    OpenAi,
}

/// Pauses and limits of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// The pause after every turn.
    pub poll: Duration,
    /// How long to wait for a rate limit without a stated reset.
    pub rate_limit_sleep: Duration,
    /// The longest wait for a stated reset; then one turn probes.
    pub rate_limit_horizon: Duration,
    /// The first pause after the service was not to be had; it doubles.
    pub unavailable_first: Duration,
    /// The longest such pause.
    pub unavailable_longest: Duration,
    /// How long a running turn may take to end when the harness stops.
    pub stop_grace: Duration,
    /// How often to look at the credentials while waiting for a login.
    pub login_look: Duration,
}

impl Environment {
    /// Reads the process's own environment.
    ///
    /// # Errors
    /// The first variable that makes no sense.
    pub fn from_process() -> Result<Self, EnvironmentError> {
        Self::read(std::env::vars_os().collect())
    }

    /// Reads the given variables.
    ///
    /// # Errors
    /// The first variable that makes no sense.
    pub fn read(variables: Vec<(OsString, OsString)>) -> Result<Self, EnvironmentError> {
        let vars = Reader::new(variables)?;
        let places = places(&vars)?;
        Ok(Self {
            socket: vars.path("HIVE_SOCKET")?,
            identity: identity(&vars)?,
            login_command: login_command(&vars)?,
            plugins: plugins(&vars)?,
            dashboard_links: vars.optional_line("HIVE_DASHBOARD_LINKS")?,
            engine: EngineSettings {
                command: vars.words("HIVE_ENGINE")?,
                env: engine_env(&vars)?,
                linger: vars.seconds("HIVE_ENGINE_LINGER_SECS", 0..=86_400)?,
                silence: vars.seconds("HIVE_ENGINE_SILENCE_SECS", 1..=86_400)?,
                exit: vars.seconds("HIVE_ENGINE_EXIT_SECS", 1..=86_400)?,
                kill_grace: vars.seconds("HIVE_ENGINE_KILL_SECS", 0..=3_600)?,
                consent: vars.seconds("HIVE_CONSENT_SECS", 0..=3_600)?,
            },
            gateway: gateway(&vars)?,
            default_model: vars.model("HIVE_DEFAULT_MODEL")?,
            windows: windows(&vars)?,
            watermarks: watermarks(&vars)?,
            tool_groups: tool_groups(&vars)?,
            pace: pace(&vars)?,
            event_buffer: vars.number("HIVE_EVENT_BUFFER_BYTES", 65_536..=1 << 30)?,
            places,
        })
    }

    /// Where `hive wake` and `hive mcp` find the socket: all that they need.
    ///
    /// # Errors
    /// When `HIVE_SOCKET` makes no sense.
    pub fn socket_from_process() -> Result<PathBuf, EnvironmentError> {
        let socket = std::env::var_os("HIVE_SOCKET");
        let variables = socket.map(|value| (OsString::from("HIVE_SOCKET"), value));
        Reader::new(variables.into_iter().collect())?.path("HIVE_SOCKET")
    }
}

fn places(vars: &Reader) -> Result<Places, EnvironmentError> {
    let harness = vars.path("HIVE_HARNESS_DIR")?;
    let model_file = vars.optional_path("HYPERHIVE_MODEL_FILE")?;
    let bash_socket = vars.optional_path("HIVE_BASH_SOCKET")?;
    let credentials = match vars.optional_path("CLAUDE_CONFIG_DIR")? {
        Some(dir) => dir,
        None => match vars.optional_path("HOME")? {
            Some(home) => home.join(".claude"),
            None => PathBuf::from("/root/.claude"),
        },
    };
    Ok(Places {
        state: vars.path("HIVE_STATE_DIR")?,
        model_file: model_file.unwrap_or_else(|| harness.join("hyperhive-model")),
        bash_socket: bash_socket.unwrap_or_else(|| harness.join("bash.sock")),
        harness,
        credentials,
        extra_mcp: vars.optional_path("HIVE_EXTRA_MCP")?,
        bash_mcp: vars.path("HIVE_BASH_MCP")?,
        bash_daemon: vars.path("HIVE_BASH_DAEMON")?,
    })
}

fn identity(vars: &Reader) -> Result<Identity, EnvironmentError> {
    Ok(Identity {
        label: vars.line("HIVE_LABEL")?,
        domain: vars.optional_line("HIVE_DOMAIN")?,
        hive_name: vars.optional_line("HIVE_NAME")?,
        swarm_name: vars.optional_line("HIVE_SWARM")?,
        operator_pronouns: vars.line("HIVE_OPERATOR_PRONOUNS")?,
        is_manager: match vars.text("HIVE_ROLE")?.as_str() {
            "agent" => false,
            "manager" => true,
            _ => return Err(vars.refuse("HIVE_ROLE", "it is `agent` or `manager`")),
        },
        port: vars.optional_port("HIVE_PORT")?,
        dashboard_port: vars.optional_port("HIVE_DASHBOARD_PORT")?,
        agents_dir: vars.line("HIVE_AGENTS_DIR")?,
    })
}

fn plugins(vars: &Reader) -> Result<Plugins, EnvironmentError> {
    let list = |name| match vars.optional_line(name)? {
        None => Ok(Vec::new()),
        Some(text) => {
            serde_json::from_str(&text).map_err(|_| vars.refuse(name, "it is a JSON list of texts"))
        }
    };
    Ok(Plugins {
        marketplaces: list("HIVE_CLAUDE_MARKETPLACES")?,
        plugins: list("HIVE_CLAUDE_PLUGINS")?,
        auto_update: vars
            .optional_number("HIVE_CLAUDE_PLUGINS_AUTO_UPDATE", 0..=1)?
            .is_some_and(|on| on == 1),
    })
}

/// What runs a login: the engine itself unless something else is set.
fn login_command(vars: &Reader) -> Result<Vec<String>, EnvironmentError> {
    if let Some(command) = vars.optional_words("HIVE_LOGIN_COMMAND")? {
        return Ok(command);
    }
    let mut command = vars.words("HIVE_ENGINE")?;
    command.extend(["auth".to_owned(), "login".to_owned()]);
    Ok(command)
}

fn engine_env(vars: &Reader) -> Result<Vec<(String, String)>, EnvironmentError> {
    const PREFIX: &str = "HIVE_ENGINE_ENV_";
    let pairs = vars
        .with_prefix(PREFIX)
        .map(|(name, value)| match &name[PREFIX.len()..] {
            "" => Err(vars.refuse(name, "it needs the name of a variable at its end")),
            bare => Ok((bare.to_owned(), value.to_owned())),
        });
    pairs.collect()
}

fn gateway(vars: &Reader) -> Result<Option<GatewaySettings>, EnvironmentError> {
    let Some(socket) = vars.optional_path("HIVE_GATEWAY_SOCKET")? else {
        return Ok(None);
    };
    const APIS: &str = "HIVE_GATEWAY_APIS";
    let listed = vars.text(APIS)?;
    let apis = listed.split(',').map(|api| match api.trim() {
        "anthropic" => Ok(Api::Anthropic),
        "openai" => Ok(Api::OpenAi),
        _ => Err(vars.refuse(APIS, "it lists `anthropic`, `openai` or both, with a comma")),
    });
    const NETWORK: &str = "HIVE_NETWORK";
    let network = match vars.text(NETWORK)?.as_str() {
        "gateway" => Network::Gateway,
        "none" => Network::None,
        "host" => Network::Host,
        _ => return Err(vars.refuse(NETWORK, "it is `gateway`, `none` or `host`")),
    };
    Ok(Some(GatewaySettings {
        socket,
        apis: apis.collect::<Result<_, _>>()?,
        network,
    }))
}

fn tool_groups(vars: &Reader) -> Result<Groups, EnvironmentError> {
    const NAME: &str = "HIVE_TOOL_GROUPS";
    let (groups, unknown) = Groups::parse(&vars.text(NAME)?);
    match unknown.first() {
        None => Ok(groups),
        Some(word) => {
            let known: Vec<_> = Group::ALL.iter().map(|group| group.as_str()).collect();
            let problem = format!("there is no group `{word}`, only {}", known.join(", "));
            Err(vars.refuse(NAME, &problem))
        }
    }
}

fn windows(vars: &Reader) -> Result<ContextWindows, EnvironmentError> {
    const GLOBAL: &str = "HIVE_CONTEXT_WINDOW_TOKENS";
    let mut windows = ContextWindows::new(vars.number(GLOBAL, 1_000..=100_000_000)?);
    for (name, value) in vars.with_prefix("HIVE_CONTEXT_WINDOW_TOKENS_") {
        let key = &name[GLOBAL.len() + 1..];
        let tokens = value
            .parse()
            .ok()
            .filter(|n| (1_000..=100_000_000).contains(n));
        match tokens {
            Some(tokens) if !key.is_empty() => windows.insert(key, tokens),
            _ => {
                return Err(vars.refuse(name, "it is a number of tokens from 1000 to 100000000"));
            }
        }
    }
    Ok(windows)
}

fn watermarks(vars: &Reader) -> Result<Watermarks, EnvironmentError> {
    let watermark = |name, share| {
        Ok(match vars.optional_number(name, 0..=100_000_000)? {
            None => Watermark::Share(share),
            Some(0) => Watermark::Off,
            Some(tokens) => Watermark::Tokens(tokens),
        })
    };
    Ok(Watermarks {
        compact: watermark("HIVE_COMPACT_WATERMARK_TOKENS", 75)?,
        reset: watermark("HIVE_AUTO_RESET_WATERMARK_TOKENS", 50)?,
        cache_ttl: vars.seconds("HIVE_CACHE_TTL_SECS", 0..=31_536_000)?,
    })
}

fn pace(vars: &Reader) -> Result<Pace, EnvironmentError> {
    Ok(Pace {
        poll: Duration::from_millis(vars.number("HIVE_POLL_MS", 0..=600_000)?),
        rate_limit_sleep: vars.seconds("HIVE_RATE_LIMIT_SLEEP_SECS", 0..=86_400)?,
        rate_limit_horizon: vars.seconds("HIVE_RATE_LIMIT_HORIZON_SECS", 1..=604_800)?,
        unavailable_first: Duration::from_millis(
            vars.number("HIVE_UNAVAILABLE_FIRST_MS", 0..=600_000)?,
        ),
        unavailable_longest: vars.seconds("HIVE_UNAVAILABLE_LONGEST_SECS", 0..=86_400)?,
        stop_grace: vars.seconds("HIVE_STOP_GRACE_SECS", 0..=3_600)?,
        login_look: Duration::from_millis(vars.number("HIVE_LOGIN_LOOK_MS", 10..=600_000)?),
    })
}

#[cfg(test)]
mod tests;
