//! Scenario files: an ordered list of rules, each with what it matches and what it answers.
//!
//! Everything is checked while reading, so that a scenario that loads can be played: patterns
//! compile, placeholders exist, headers are valid, and a word that means nothing is an error with
//! its line. The format is documented in docs/rehearsal.md.

pub mod answer;
pub mod builtin;
pub mod error;
pub mod fault;
pub mod json_template;
pub mod limits;
pub mod number;
pub mod rule;
pub mod template;
pub mod text;
pub mod when;

use std::path::Path;

use serde::Deserialize;

use self::{answer::Pace, number::Millis};
pub use self::{error::ScenarioError, rule::Rule};

/// What happens to a step of a conversation that no rule answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// The model says that nothing was scripted.
    #[default]
    Say,
    /// The request fails with status 400.
    Fail,
}

/// How a scripted model behaves.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Where it came from: a file or the name of a built-in one.
    #[serde(skip)]
    pub name: String,
    /// The version of the format.
    pub schema: Schema,
    /// One line about it, for `hive-rehearsal scenarios`.
    pub description: String,
    /// The models that exist; empty for any.
    pub models: Vec<String>,
    /// Whether requests that the real API refuses are refused.
    pub strict: bool,
    /// After so many answers to one prompt no tool is called any more.
    pub max_steps: u64,
    /// What happens when no rule matches.
    pub unmatched: Unmatched,
    /// For how long connections are refused at first.
    #[serde(rename = "refuse_at_start_ms")]
    pub refuse_at_start: Millis,
    /// How answers are paced that do not say it themselves.
    pub pace: Pace,
    /// The rules; the first that matches answers.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// The version of the format: 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Schema(u32);

impl TryFrom<u32> for Schema {
    type Error = String;

    fn try_from(version: u32) -> Result<Self, String> {
        if version == 1 {
            return Ok(Self(version));
        }
        Err(format!("schema {version} is not known here: write 1"))
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: "empty".to_owned(),
            schema: Schema(1),
            description: String::new(),
            models: Vec::new(),
            strict: true,
            max_steps: 100,
            unmatched: Unmatched::default(),
            refuse_at_start: Millis::default(),
            pace: Pace::default(),
            rules: Vec::new(),
        }
    }
}

/// A scenario file is text that a person wrote; more than this is a mistake, or a recording that
/// should be cut.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

impl Scenario {
    /// Reads a scenario from its text; `name` is for messages.
    ///
    /// # Errors
    /// With the line, the key and what was probably meant.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(name, text, &error))?;
        scenario.name = name.to_owned();
        for (at, rule) in scenario.rules.iter_mut().enumerate() {
            if rule.name.is_empty() {
                rule.name = format!("rule {}", at + 1);
            }
        }
        Ok(scenario)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Scenario::parse`].
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let unreadable = |source| ScenarioError::Unreadable {
            file: name.clone(),
            source,
        };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > MAX_FILE_BYTES {
            let source = std::io::Error::other(format!(
                "it has {length} bytes and {MAX_FILE_BYTES} are the most"
            ));
            return Err(unreadable(source));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&name, &text)
    }

    /// A built-in scenario by its name, or else a file.
    ///
    /// # Errors
    /// As [`Scenario::load`]; a word that is neither names the built-in that was probably meant.
    pub fn find(word: &str) -> Result<Self, ScenarioError> {
        if let Some(builtin) = builtin::named(word) {
            return Self::parse(word, builtin.text);
        }
        let looks_like_file = word.contains(['/', '.']);
        let path = Path::new(word);
        if !looks_like_file && !path.exists() {
            return Err(ScenarioError::unknown_name(word));
        }
        Self::load(path)
    }
}

#[cfg(test)]
mod tests;
