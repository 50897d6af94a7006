//! `[engine]`: what runs the turns, and what it gets to know.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

/// The context windows of the models that are known, in tokens.
const KNOWN_WINDOWS: [(&str, u64); 3] = [
    ("haiku", 200_000),
    ("sonnet", 1_000_000),
    ("opus", 1_000_000),
];

/// What runs the turns.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// `auto`, `claude`, `native` or a command.
    pub default: String,
    /// How many seconds an engine stays warm after a turn; 0 for one process per turn.
    pub linger_secs: u32,
    /// Whether engines reach their model through the host's gateway, which holds the keys.
    pub gateway: bool,
    /// How many seconds the operator has to permit a call that an engine's rules leave open; 0
    /// refuses at once.
    pub consent_secs: u32,
    /// Variables for engines alone: keys and base URLs.
    pub env: EngineEnv,
    /// The context window of models whose name holds the key, in tokens (T18).
    pub context_windows: BTreeMap<String, u64>,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            default: "auto".to_owned(),
            linger_secs: 0,
            gateway: true,
            consent_secs: 240,
            env: EngineEnv::default(),
            context_windows: BTreeMap::new(),
        }
    }
}

impl Engine {
    /// Every context window by the key that a model's name holds.
    pub fn windows(&self) -> BTreeMap<String, u64> {
        let known = KNOWN_WINDOWS.map(|(key, tokens)| (key.to_owned(), tokens));
        let own = self.context_windows.iter();
        known
            .into_iter()
            .chain(own.map(|(key, tokens)| (key.to_lowercase(), *tokens)))
            .collect()
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.default.trim().is_empty(),
            "engine.default must be `auto`, `claude`, `native` or a command"
        );
        anyhow::ensure!(
            self.linger_secs <= 86_400,
            "engine.linger_secs is at most 86400"
        );
        // An engine that says nothing for longer than seven minutes is taken for dead.
        anyhow::ensure!(
            self.consent_secs <= 360,
            "engine.consent_secs is at most 360"
        );
        for (name, value) in &self.env.0 {
            let mut letters = name.chars();
            let begins_well = letters
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            anyhow::ensure!(
                begins_well && letters.all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "engine.env: `{name}` is no name of a variable"
            );
            anyhow::ensure!(
                !name.starts_with("HIVE_"),
                "engine.env: {name} is set by the hive itself"
            );
            anyhow::ensure!(!value.contains('\0'), "engine.env: {name} holds a NUL");
        }
        for (key, tokens) in &self.context_windows {
            let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric());
            anyhow::ensure!(
                is_word,
                "engine.context_windows: `{key}` is no part of a model's name; write letters and \
                 digits, such as `sonnet`"
            );
            anyhow::ensure!(
                (1_000..=100_000_000).contains(tokens),
                "engine.context_windows.{key} is a number of tokens from 1000 to 100000000"
            );
        }
        Ok(())
    }
}

/// Variables whose values nobody prints by accident.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct EngineEnv(BTreeMap<String, String>);

impl EngineEnv {
    /// One of them.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl fmt::Debug for EngineEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
