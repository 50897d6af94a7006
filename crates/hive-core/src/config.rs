//! `hive.toml`: everything is optional, and a word that means nothing is an error.

mod agent_limits;
mod engine;
mod identity;
mod network;
mod notify;

use std::{ffi::OsStr, io, ops::RangeInclusive, path::Path, time::Duration};

use anyhow::Context;
use hive_wire::{
    host::{Network, Runtime},
    text,
};
use serde::{Deserialize, de};

pub use agent_limits::AgentLimits;
pub use engine::{Engine, EngineEnv};
pub use identity::Hive;
pub use network::{Budget, Egress};
pub use notify::{Notify, NotifyKind, QuietHours, Secret};

use crate::permissions::Rate;

/// The variable that wins over `limits.reminders_per_agent`.
const MAX_REMINDERS: &str = "HIVE_REMIND_MAX_PENDING_PER_AGENT";

/// The whole configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Who this hive is.
    pub hive: Hive,
    /// The page.
    pub dashboard: Dashboard,
    /// What runs the turns.
    pub engine: Engine,
    /// How agents run.
    pub agents: Agents,
    /// How much of everything.
    pub limits: Limits,
    /// Who is told of what waits for the operator.
    pub notify: Notify,
}

/// Where the pages are.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dashboard {
    /// The address to listen on.
    pub bind: std::net::IpAddr,
    /// The dashboard's port.
    pub port: u16,
    /// The ports of the agents' pages.
    pub agent_ports: PortRange,
    /// Further names accepted in `Host`.
    pub hosts: Vec<String>,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self {
            bind: std::net::Ipv4Addr::LOCALHOST.into(),
            port: 7000,
            agent_ports: PortRange(8100..=8999),
            hosts: Vec::new(),
        }
    }
}

/// A range of ports, written `8100-8999`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let range = text
            .split_once('-')
            .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
        match range {
            Some((low, high)) if low > 0 && low <= high => Ok(Self(low..=high)),
            _ => Err(de::Error::custom(format!(
                "`{text}` is no range of ports; write it like \"8100-8999\""
            ))),
        }
    }
}

/// How agents run, unless they say otherwise themselves.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agents {
    /// Where they run.
    pub runtime: Runtime,
    /// What they may reach of the network.
    pub network: Network,
    /// Where the egress proxy lets them go.
    pub egress: Egress,
    /// What each of them may spend in a day.
    pub budget: Budget,
    /// Which model they use.
    pub model: String,
    /// How much they may use.
    pub limits: AgentLimits,
    /// How often an agent that keeps ending is started again before it counts as failed.
    pub restarts: u32,
    /// The pause before the first of these starts, in milliseconds; it doubles.
    pub restart_delay_ms: u32,
    /// How many seconds an agent gets to end before it is killed.
    pub stop_secs: u32,
    /// How many seconds an agent gets to come up with a new configuration.
    pub trial_secs: u32,
    /// How many seconds pass before everything is compared anew, whether something happened or not.
    pub look_secs: u32,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            runtime: Runtime::Auto,
            network: Network::Auto,
            egress: Egress::default(),
            budget: Budget::default(),
            model: "haiku".to_owned(),
            limits: AgentLimits::default(),
            restarts: 5,
            restart_delay_ms: 1_000,
            stop_secs: 20,
            trial_secs: 60,
            look_secs: 60,
        }
    }
}

impl Agents {
    /// What an agent reaches of the network that asks for `own` and runs in `runtime`.
    pub(crate) fn network(&self, own: Network, runtime: Runtime) -> Network {
        own.or(self.network).in_runtime(runtime)
    }

    /// How long an agent gets to end before it is killed.
    pub fn stop_grace(&self) -> Duration {
        Duration::from_secs(self.stop_secs.into())
    }

    /// How long it takes until everything is compared anew.
    pub fn look_again(&self) -> Duration {
        Duration::from_secs(self.look_secs.max(1).into())
    }

    fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.model.trim().is_empty(),
            "agents.model must name a model, such as \"haiku\""
        );
        self.budget.check("agents.budget")?;
        self.egress.check()?;
        self.limits.check()
    }
}

/// How much of everything.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most messages that wait in one inbox.
    pub inbox_depth: u32,
    /// After so many counted failures a message is a dead letter.
    pub deliveries_before_dead: u32,
    /// For how many days settled messages and their receipts are kept.
    pub retention_days: u32,
    /// The most events the event log keeps.
    pub events: usize,
    /// The most events that the event log keeps of what one agent posts …
    pub events_per_agent: usize,
    /// … and the most mebibytes.
    pub event_mib_per_agent: usize,
    /// The most rows of statistics that are kept of one agent's turns.
    pub turns_per_agent: u32,
    /// The most connections to one agent's socket.
    pub connections_per_agent: usize,
    /// How many seconds a line may take from its first byte to its newline.
    pub line_seconds: u32,
    /// The most open questions one agent may have asked.
    pub questions_per_agent: u32,
    /// The most pending reminders of one agent.
    pub reminders_per_agent: u32,
    /// The most schedules of one agent.
    pub schedules_per_agent: u32,
    /// How much one agent may send in a minute, in the long run; 0 for no limit …
    pub sends_per_minute: u32,
    /// … and how much at once.
    pub send_burst: u32,
    /// How many seconds a request waits for the operator.
    pub approval_seconds: u32,
    /// The most requests of one agent that wait for the operator.
    pub approvals_per_agent: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inbox_depth: 10_000,
            deliveries_before_dead: 5,
            retention_days: 30,
            events: 200_000,
            events_per_agent: 20_000,
            event_mib_per_agent: 16,
            turns_per_agent: 10_000,
            connections_per_agent: 64,
            line_seconds: 30,
            questions_per_agent: 50,
            reminders_per_agent: 50,
            schedules_per_agent: 20,
            sends_per_minute: 600,
            send_burst: 1_000,
            approval_seconds: 7 * 24 * 60 * 60,
            approvals_per_agent: 20,
        }
    }
}

impl Limits {
    /// For how long settled messages are kept.
    pub fn retention(&self) -> Duration {
        Duration::from_secs(u64::from(self.retention_days) * 24 * 60 * 60)
    }

    /// How many bytes the event log keeps of what one agent posts.
    pub fn event_bytes_per_agent(&self) -> usize {
        self.event_mib_per_agent.saturating_mul(1024 * 1024)
    }

    /// How fast one agent may send.
    pub(crate) fn rate(&self) -> Rate {
        Rate {
            per_minute: self.sends_per_minute,
            burst: self.send_burst,
        }
    }

    /// How long a line may take.
    pub fn line_time(&self) -> Duration {
        Duration::from_secs(self.line_seconds.into())
    }

    /// Refuses a limit of nothing where nothing would work.
    fn check(&self) -> anyhow::Result<()> {
        let connections = u32::try_from(self.connections_per_agent).unwrap_or(u32::MAX);
        for (key, limit) in [
            ("inbox_depth", self.inbox_depth),
            ("deliveries_before_dead", self.deliveries_before_dead),
            ("connections_per_agent", connections),
            ("line_seconds", self.line_seconds),
            ("send_burst", self.send_burst),
            ("approval_seconds", self.approval_seconds),
        ] {
            anyhow::ensure!(limit > 0, "limits.{key} must be at least 1");
        }
        Ok(())
    }
}

impl Config {
    /// Reads the file, or the defaults when there is none. The environment wins over the file.
    ///
    /// # Errors
    /// With the line and what was probably meant.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let mut config = match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).with_context(|| format!("in {}", path.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let of_reminders = std::env::var_os(MAX_REMINDERS);
        if let Some(limit) = reminders_from(of_reminders.as_deref())? {
            config.limits.reminders_per_agent = limit;
        }
        Ok(config)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let message = error.to_string();
            match unknown_field(error.message()) {
                Some(near) => anyhow::anyhow!("{message}did you mean `{near}`?"),
                None => anyhow::anyhow!("{message}"),
            }
        })?;
        config.limits.check()?;
        config.engine.check()?;
        config.agents.check()?;
        config.hive.budget.check("hive.budget")?;
        config.notify.check()?;
        Ok(config)
    }
}

/// The limit of reminders that the variable sets, if it is set to anything.
fn reminders_from(value: Option<&OsStr>) -> anyhow::Result<Option<u32>> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let limit = value.to_str().and_then(|text| text.parse().ok());
    let limit = limit.with_context(|| {
        let shown = text::shorten(&text::printable(&value.to_string_lossy()), 80);
        format!(
            "{MAX_REMINDERS}={shown}: it is how many reminders of an agent may be pending, a \
             number from 0 to {}; unset it to have `limits.reminders_per_agent` of hive.toml",
            u32::MAX
        )
    })?;
    Ok(Some(limit))
}

/// What was probably meant by the unknown field that serde complains of:
/// "unknown field `prot`, expected one of `bind`, `port`".
pub(crate) fn unknown_field(message: &str) -> Option<&str> {
    let mut quoted = message
        .strip_prefix("unknown field")?
        .split('`')
        .skip(1)
        .step_by(2);
    let wanted = quoted.next()?;
    text::did_you_mean(wanted, quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_required() {
        let config = Config::parse("").unwrap();
        assert_eq!(config.dashboard.port, 7000);
        assert_eq!(config.dashboard.agent_ports.0, 8100..=8999);
        assert_eq!(config.hive.root_agent, "ruth");
        assert_eq!(config.engine.default, "auto");
        assert_eq!(config.agents.model, "haiku");
    }

    /// The keys of a table, as serde lists them when another one is asked for.
    fn keys(table: &str) -> Vec<String> {
        let header = match table {
            "" => String::new(),
            table => format!("[{table}]\n"),
        };
        let error = toml::from_str::<Config>(&format!("{header}zzz = 1\n")).unwrap_err();
        let expected = error.message().split("expected").nth(1).unwrap();
        let words = expected.split('`').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    }

    #[test]
    fn every_key_is_in_the_docs() {
        let page = include_str!("../../../docs/configuration.md");
        let tables = ["hive", "dashboard", "engine", "agents", "limits", "notify"];
        assert_eq!(keys(""), tables);
        // Tables in tables, and those whose keys are the user's own.
        let inner = [
            "hive.budget",
            "agents.budget",
            "agents.egress",
            "agents.limits",
        ];
        for table in tables.into_iter().chain(inner) {
            for key in keys(table).iter().map(|key| format!("{table}.{key}")) {
                let is_there = inner.contains(&key.as_str()) || page.contains(&format!("`{key}`"));
                assert!(is_there, "docs/configuration.md does not have {key}");
            }
        }
    }

    #[test]
    fn keys_of_the_engine_are_not_printed() {
        let config = Config::parse("[engine.env]\nANTHROPIC_API_KEY = \"sk-secret\"").unwrap();
        assert_eq!(
            config.engine.env.get("ANTHROPIC_API_KEY"),
            Some("sk-secret")
        );
        let printed = format!("{config:?}");
        assert!(printed.contains("ANTHROPIC_API_KEY"), "{printed}");
        assert!(!printed.contains("sk-secret"), "{printed}");
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_line_and_a_guess() {
        let error = Config::parse("[dashboard]\nbind = \"::1\"\nprot = 7\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 3"), "{error}");
        assert!(error.contains("did you mean `port`?"), "{error}");
    }

    #[test]
    fn bad_values_say_what_is_expected() {
        for (text, expected) in [
            ("[dashboard]\nagent_ports = \"9000-8000\"", "8100-8999"),
            ("[dashboard]\nport = 70000", "u16"),
            ("[limits]\ninbox_depth = 0", "at least 1"),
            ("[agents]\nruntime = \"dcoker\"", "`process`"),
            ("[agents]\nmodel = \" \"", "must name a model"),
            ("[engine]\ndefault = \"\"", "engine.default"),
            ("[engine.env]\n\"A B\" = \"x\"", "`A B`"),
            ("[engine.env]\nHIVE_SOCKET = \"x\"", "HIVE_SOCKET"),
            ("[engine]\nconsent_secs = 361", "consent_secs"),
            ("[engine.context_windows]\nhaiku = 1", "1000"),
            ("[limits\n", "line 1"),
        ] {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
