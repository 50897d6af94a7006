//! What an agent is started with: the harness's whole environment, made from the configuration
//! (T16, C17). Nothing of the daemon's own is inherited but what [`PASSED_ON`] names.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use hive_runtime::{AgentDirs, AgentSpec, Command, Owner, View};
use hive_store::sqlite::AgentRecord;
use hive_wire::{grants::Groups, host::Network};

use super::settings::Settings;
use crate::{
    agent_config::{self, AgentConfig, Around},
    config::Config,
    engine::{is_program, on_path},
    gateway,
    model::ModelAccess,
};

/// Before a variable's name: it is for the engine alone, under its bare name.
const FOR_ENGINE: &str = "HIVE_ENGINE_ENV_";

/// What an agent gets of the daemon's own environment: language, time zone, the way to the network.
const PASSED_ON: [&str; 18] = [
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_TIME",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NIX_SSL_CERT_FILE",
];

/// Those of them that name a file.
const CERTIFICATES: [&str; 3] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE"];

/// The hive's own programs that agents run, beside the harness.
const OWN: [&str; 4] = ["hive", "hive-bash-daemon", "hive-bash-mcp", "hive-engine"];

/// What a specification is made from.
pub(super) struct Inputs<'i> {
    pub(super) agent: &'i AgentRecord,
    /// Its tool groups.
    pub(super) groups: &'i Groups,
    pub(super) config: &'i Config,
    /// Its own configuration.
    pub(super) applied: &'i AgentConfig,
    pub(super) settings: &'i Settings,
    pub(super) model: &'i ModelAccess,
    /// The engine's command.
    pub(super) engine: &'i str,
    /// On the host.
    pub(super) dirs: AgentDirs,
    pub(super) owner: Owner,
    /// Where the agent finds its things.
    pub(super) view: View,
    pub(super) harness: &'i Path,
    /// The directory of the hive's own binaries.
    pub(super) binaries: &'i Path,
    pub(super) dashboard_port: u16,
    /// The daemon's own environment.
    pub(super) var: &'i dyn Fn(&str) -> Option<String>,
}

/// Makes the specification of an agent.
pub(super) fn of(inputs: Inputs<'_>) -> AgentSpec {
    let mut env = passed_on(&inputs);
    env.extend(identity(&inputs));
    env.extend(places(&inputs));
    env.extend(engine(&inputs));
    env.extend(own(&inputs));
    AgentSpec {
        name: inputs.agent.name.clone(),
        generation: inputs.agent.run.generation,
        command: Command {
            program: inputs.harness.to_path_buf(),
            args: vec!["serve".to_owned()],
        },
        env,
        programs: programs(&inputs),
        mounts: inputs.settings.mounts.clone(),
        network: inputs.settings.network,
        owner: inputs.owner,
        user: inputs.settings.user.clone(),
        limits: inputs.settings.limits,
        dirs: inputs.dirs,
    }
}

/// What an agent in a container runs of the host: the hive's own programs, the engine's command,
/// and certificates that a variable names.
fn programs(inputs: &Inputs<'_>) -> Vec<PathBuf> {
    let beside = OWN.map(|name| inputs.binaries.join(name));
    let mut programs = vec![inputs.harness.to_path_buf()];
    programs.extend(beside.into_iter().filter(|file| is_program(file)));
    let search = (inputs.var)("PATH").unwrap_or_default();
    for word in inputs.engine.split_whitespace() {
        let file = Path::new(word);
        if file.is_absolute() {
            programs.push(file.to_path_buf());
        }
    }
    // The command itself may be a bare name.
    let command = inputs.engine.split_whitespace().next();
    programs.extend(command.and_then(|name| on_path(name, search.as_ref())));
    let certificates = CERTIFICATES.iter().filter_map(|name| (inputs.var)(name));
    programs.extend(certificates.map(PathBuf::from));
    programs
}

type Env = BTreeMap<String, String>;

fn entry(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn passed_on(inputs: &Inputs<'_>) -> Env {
    let is_on_hosts_network = network(inputs) == Network::Host;
    let passed = PASSED_ON
        .iter()
        // The host's proxy is out of reach from elsewhere.
        .filter(|name| is_on_hosts_network || !name.to_lowercase().ends_with("_proxy"))
        .filter_map(|name| Some(entry(name, (inputs.var)(name)?)));
    let search = (inputs.var)("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    // The hive's own binaries come first: an agent finds the `hive` that runs it.
    let path = format!("{}:{search}", inputs.binaries.display());
    passed.chain([entry("PATH", path)]).collect()
}

fn identity(inputs: &Inputs<'_>) -> Env {
    let (agent, hive) = (inputs.agent, &inputs.config.hive);
    let name = agent.name.as_str();
    let role = if name == hive.root_agent {
        "manager"
    } else {
        "agent"
    };
    let domain = hive.domain.as_deref().unwrap_or("hive.invalid");
    let address = format!("{name}@{domain}");
    let mut env = Env::from([
        entry("HIVE_LABEL", name),
        entry("HIVE_ROLE", role),
        entry("HIVE_TOOL_GROUPS", inputs.groups.join()),
        entry("HIVE_OPERATOR_PRONOUNS", &hive.operator_pronouns),
        entry("HIVE_PORT", agent.port.to_string()),
        entry("HIVE_DASHBOARD_PORT", inputs.dashboard_port.to_string()),
    ]);
    for (variable, value) in [
        ("HIVE_NAME", &hive.name),
        ("HIVE_SWARM", &hive.swarm),
        ("HIVE_DOMAIN", &hive.domain),
    ] {
        env.extend(value.as_ref().map(|value| entry(variable, value)));
    }
    for part in ["AUTHOR", "COMMITTER"] {
        env.extend([
            entry(&format!("GIT_{part}_NAME"), name),
            entry(&format!("GIT_{part}_EMAIL"), &address),
        ]);
    }
    env
}

fn places(inputs: &Inputs<'_>) -> Env {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let view = &inputs.view.dirs;
    Env::from([
        entry("HIVE_SOCKET", path(&view.run.join("mcp.sock"))),
        entry("HIVE_STATE_DIR", path(&view.state)),
        entry("HIVE_HARNESS_DIR", path(&view.harness)),
        entry("HIVE_BASH_SOCKET", path(&inputs.view.bash_socket)),
        entry("CLAUDE_CONFIG_DIR", path(&view.claude)),
        entry("HOME", path(&view.home)),
        entry("PWD", path(&view.state)),
    ])
}

/// What its own configuration says. It cannot set what the host sets: its names are checked.
fn own(inputs: &Inputs<'_>) -> Env {
    let extra_mcp = inputs.view.dirs.run.join(super::extra::FILE);
    let mut env = agent_config::environment(
        inputs.applied,
        Around {
            extra_mcp: &extra_mcp.to_string_lossy(),
            static_dir: None,
        },
    );
    if let Some(proposals) = &inputs.settings.proposals {
        env.extend([entry("HIVE_AGENTS_DIR", proposals.to_string_lossy())]);
    }
    env
}

fn engine(inputs: &Inputs<'_>) -> Env {
    let (run, config) = (&inputs.agent.run, inputs.config);
    let model = if run.model.is_empty() {
        &config.agents.model
    } else {
        &run.model
    };
    let stop = config.agents.stop_secs / 2;
    let mut env = Env::from([
        entry("HIVE_ENGINE", inputs.engine),
        entry("HIVE_DEFAULT_MODEL", model),
        entry("HIVE_STOP_GRACE_SECS", stop.to_string()),
        entry(
            "HIVE_ENGINE_LINGER_SECS",
            config.engine.linger_secs.to_string(),
        ),
        entry("HIVE_CONSENT_SECS", config.engine.consent_secs.to_string()),
    ]);
    for (key, tokens) in config.engine.windows() {
        let name = format!("HIVE_CONTEXT_WINDOW_TOKENS_{}", key.to_uppercase());
        env.insert(name, tokens.to_string());
    }
    let is_gated = inputs.model.is_gated(config.engine.gateway);
    let for_engine = match is_gated {
        true => gateway::for_engines(&inputs.model.env),
        false => inputs.model.env.clone(),
    };
    for (name, value) in for_engine.iter() {
        env.insert(format!("{FOR_ENGINE}{name}"), value.to_owned());
    }
    if is_gated {
        env.extend(way_out(inputs));
    }
    env
}

fn network(inputs: &Inputs<'_>) -> Network {
    let agents = &inputs.config.agents;
    agents.network(inputs.applied.network, inputs.agent.runtime)
}

/// How the harness leads its engine to the model, and the agent to the world.
fn way_out(inputs: &Inputs<'_>) -> Env {
    let socket = inputs.view.dirs.run.join("gateway.sock");
    Env::from([
        entry("HIVE_GATEWAY_SOCKET", socket.to_string_lossy()),
        entry("HIVE_GATEWAY_APIS", gateway::apis(&inputs.model.env)),
        entry("HIVE_NETWORK", network(inputs).as_str()),
    ])
}

#[cfg(test)]
mod tests {
    use hive_store::sqlite::Run;
    use hive_wire::{Timestamp, host::Runtime};

    use super::*;

    fn agent(name: &str) -> AgentRecord {
        AgentRecord {
            name: name.parse().unwrap(),
            parent: None,
            runtime: Runtime::Process,
            port: 8123,
            created_at: Timestamp::from_millis(0),
            run: Run {
                generation: 3,
                ..Run::default()
            },
        }
    }

    fn spec(agent: &AgentRecord, config: &Config, model: &ModelAccess) -> AgentSpec {
        let dirs = AgentDirs {
            state: "/hive/state".into(),
            harness: "/hive/harness".into(),
            claude: "/hive/claude".into(),
            home: "/hive/home".into(),
            run: "/hive/run".into(),
        };
        let var = |name: &str| match name {
            "PATH" => Some("/usr/bin".to_owned()),
            "LANG" => Some("C.UTF-8".to_owned()),
            "PWD" | "HIVE_ROOT" => Some("/operator".to_owned()),
            "HOME" => Some("/root".to_owned()),
            "ANTHROPIC_API_KEY" | "AWS_SECRET_ACCESS_KEY" => Some("operator's".to_owned()),
            _ => None,
        };
        of(Inputs {
            agent,
            groups: &Groups::default(),
            config,
            applied: &AgentConfig::default(),
            model,
            engine: "/opt/claude",
            settings: &Settings::default(),
            view: View {
                bash_socket: "/hive/run/bash.sock".into(),
                dirs: dirs.clone(),
            },
            dirs,
            owner: Owner::Daemon,
            harness: Path::new("/opt/hive"),
            binaries: Path::new("/opt"),
            dashboard_port: 7000,
            var: &var,
        })
    }

    #[test]
    fn t16_c17_the_environment_is_made_of_what_the_agent_needs_and_of_nothing_else() {
        let spec = spec(&agent("ada"), &Config::default(), &ModelAccess::default());
        assert_eq!(spec.generation, 3);
        assert_eq!(spec.command.args, ["serve"]);
        let expected = [
            ("CLAUDE_CONFIG_DIR", "/hive/claude"),
            ("GIT_AUTHOR_EMAIL", "ada@hive.invalid"),
            ("GIT_AUTHOR_NAME", "ada"),
            ("GIT_COMMITTER_EMAIL", "ada@hive.invalid"),
            ("GIT_COMMITTER_NAME", "ada"),
            ("HIVE_BASH_SOCKET", "/hive/run/bash.sock"),
            ("HIVE_CONSENT_SECS", "240"),
            ("HIVE_CONTEXT_WINDOW_TOKENS_HAIKU", "200000"),
            ("HIVE_CONTEXT_WINDOW_TOKENS_OPUS", "1000000"),
            ("HIVE_CONTEXT_WINDOW_TOKENS_SONNET", "1000000"),
            ("HIVE_DASHBOARD_PORT", "7000"),
            ("HIVE_DEFAULT_MODEL", "haiku"),
            ("HIVE_ENGINE", "/opt/claude"),
            ("HIVE_ENGINE_LINGER_SECS", "0"),
            ("HIVE_FORGE_URL", "http://localhost:3000"),
            ("HIVE_GATEWAY_APIS", "anthropic"),
            ("HIVE_GATEWAY_SOCKET", "/hive/run/gateway.sock"),
            ("HIVE_HARNESS_DIR", "/hive/harness"),
            ("HIVE_LABEL", "ada"),
            ("HIVE_MATRIX_URL", "http://localhost:8008"),
            ("HIVE_NETWORK", "host"),
            ("HIVE_OPERATOR_PRONOUNS", "she/her"),
            ("HIVE_PORT", "8123"),
            ("HIVE_ROLE", "agent"),
            ("HIVE_SOCKET", "/hive/run/mcp.sock"),
            ("HIVE_STATE_DIR", "/hive/state"),
            ("HIVE_STOP_GRACE_SECS", "10"),
            ("HIVE_TOOL_GROUPS", "messaging,meta,inbox,execution"),
            ("HOME", "/hive/home"),
            ("LANG", "C.UTF-8"),
            ("PATH", "/opt:/usr/bin"),
            ("PWD", "/hive/state"),
        ];
        let found: Vec<(&str, &str)> = spec
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn c15_t18_configuration_reaches_the_harness_and_keys_only_the_engine() {
        let mut config = Config::default();
        config.hive.name = Some("hexagon".into());
        config.hive.domain = Some("example.org".into());
        config.hive.swarm = Some("north".into());
        config.agents.model = "sonnet".into();
        config.engine.context_windows =
            BTreeMap::from([("Haiku".to_owned(), 50_000), ("mine".to_owned(), 9_000)]);
        let mut model = ModelAccess::default();
        model.env.set("ANTHROPIC_API_KEY", "sk-1");
        let mut ruth = agent("ruth");
        let env = spec(&ruth, &config, &model).env;
        for (name, value) in [
            ("HIVE_NAME", "hexagon"),
            ("HIVE_SWARM", "north"),
            ("HIVE_DOMAIN", "example.org"),
            ("HIVE_ROLE", "manager"),
            ("GIT_AUTHOR_EMAIL", "ruth@example.org"),
            ("HIVE_DEFAULT_MODEL", "sonnet"),
            ("HIVE_CONTEXT_WINDOW_TOKENS_HAIKU", "50000"),
            ("HIVE_CONTEXT_WINDOW_TOKENS_MINE", "9000"),
            ("HIVE_ENGINE_ENV_ANTHROPIC_API_KEY", gateway::PLACEHOLDER),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!env.contains_key("ANTHROPIC_API_KEY"));
        assert!(
            env.values().all(|value| !value.contains("sk-1")),
            "no key goes in"
        );
        config.engine.gateway = false;
        let env = spec(&ruth, &config, &model).env;
        assert_eq!(
            env["HIVE_ENGINE_ENV_ANTHROPIC_API_KEY"], "sk-1",
            "unless it is asked for"
        );
        assert!(!env.contains_key("HIVE_GATEWAY_SOCKET"));
        ruth.run.model = "opus".into();
        let env = spec(&ruth, &config, &model).env;
        assert_eq!(env["HIVE_DEFAULT_MODEL"], "opus", "its own wins");
    }
}
