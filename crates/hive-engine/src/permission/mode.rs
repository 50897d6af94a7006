//! How much is permitted without asking.

use serde::{Deserialize, Serialize};

/// The five modes, from strict to trusting, and one for rules alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Looking only; everything else is refused.
    Safe,
    /// Looking is free, changing is asked for.
    #[default]
    Normal,
    /// Changing files in the workspace is free, what may destroy is asked for.
    Relaxed,
    /// Everything that no rule forbids.
    Auto,
    /// What the rules allow and nothing else; nobody is asked.
    Custom,
}

/// Each mode under its own name and under the names that `claude` uses.
const NAMES: &[(&str, Mode)] = &[
    ("safe", Mode::Safe),
    ("plan", Mode::Safe),
    ("normal", Mode::Normal),
    ("default", Mode::Normal),
    ("manual", Mode::Normal),
    ("relaxed", Mode::Relaxed),
    ("acceptEdits", Mode::Relaxed),
    ("auto", Mode::Auto),
    ("bypassPermissions", Mode::Auto),
    ("custom", Mode::Custom),
    ("dontAsk", Mode::Custom),
];

impl Mode {
    /// The mode of that name.
    pub fn parse(name: &str) -> Result<Self, String> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, mode)| *mode)
            .ok_or_else(|| {
                let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                format!(
                    "unknown permission mode {name:?}: use one of {}",
                    known.join(", ")
                )
            })
    }

    /// The name that `claude` prints for it.
    pub fn contract_name(self) -> &'static str {
        match self {
            Self::Safe => "plan",
            Self::Normal => "default",
            Self::Relaxed => "acceptEdits",
            Self::Auto => "bypassPermissions",
            Self::Custom => "dontAsk",
        }
    }
}
