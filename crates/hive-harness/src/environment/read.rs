//! Reading single variables: set or default, of the right shape, or refused by name.

use std::{ffi::OsString, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration};

use hive_wire::text;

use super::{EnvironmentError, table::default_of};
use crate::model::check_model_name;

/// The variables that matter, with an empty one taken for unset.
pub(super) struct Reader {
    variables: Vec<(String, String)>,
}

impl Reader {
    /// Takes those of the given variables that `hive` may read.
    pub(super) fn new(variables: Vec<(OsString, OsString)>) -> Result<Self, EnvironmentError> {
        let mut kept = Vec::new();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else {
                continue;
            };
            let ours = name.starts_with("HIVE_")
                || matches!(
                    &*name,
                    "HYPERHIVE_MODEL_FILE" | "CLAUDE_CONFIG_DIR" | "HOME"
                );
            if !ours || value.is_empty() {
                continue;
            }
            match value.into_string() {
                Ok(value) => kept.push((name, value)),
                Err(value) => {
                    return Err(EnvironmentError {
                        name,
                        value: value.to_string_lossy().into_owned(),
                        problem: "it is no UTF-8".to_owned(),
                    });
                }
            }
        }
        kept.sort();
        Ok(Self { variables: kept })
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The variables whose name goes on after `prefix`.
    pub(super) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let matching = move |(name, _): &&(String, String)| name.starts_with(prefix);
        let pairs = self.variables.iter().filter(matching);
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The error for a variable whose value makes no sense.
    pub(super) fn refuse(&self, name: &str, problem: &str) -> EnvironmentError {
        EnvironmentError {
            name: name.to_owned(),
            value: text::shorten(self.get(name).unwrap_or_default(), 80),
            problem: problem.to_owned(),
        }
    }

    fn optional_text(&self, name: &str) -> Option<String> {
        let set = self.get(name).map(str::to_owned);
        set.or_else(|| Some(default_of(name).to_owned()).filter(|text| !text.is_empty()))
    }

    /// Any text.
    pub(super) fn text(&self, name: &str) -> Result<String, EnvironmentError> {
        self.optional_text(name)
            .ok_or_else(|| self.refuse(name, "it has to be set"))
    }

    /// One line of at most 200 characters.
    pub(super) fn optional_line(&self, name: &str) -> Result<Option<String>, EnvironmentError> {
        match self.optional_text(name) {
            Some(text) if text.chars().any(char::is_control) || text.chars().count() > 200 => {
                Err(self.refuse(name, "it is one line of at most 200 characters"))
            }
            text => Ok(text),
        }
    }

    /// One line that has to be there.
    pub(super) fn line(&self, name: &str) -> Result<String, EnvironmentError> {
        self.optional_line(name)?
            .ok_or_else(|| self.refuse(name, "it has to be set"))
    }

    /// A path, when it is set.
    pub(super) fn optional_path(&self, name: &str) -> Result<Option<PathBuf>, EnvironmentError> {
        match self.optional_text(name) {
            Some(text) if text.contains('\0') => Err(self.refuse(name, "it is no path")),
            text => Ok(text.map(PathBuf::from)),
        }
    }

    /// A path.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, EnvironmentError> {
        self.optional_path(name)?
            .ok_or_else(|| self.refuse(name, "it has to be set"))
    }

    /// A program and its arguments, separated by spaces, when it is set.
    pub(super) fn optional_words(
        &self,
        name: &str,
    ) -> Result<Option<Vec<String>>, EnvironmentError> {
        let Some(text) = self.optional_text(name) else {
            return Ok(None);
        };
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(self.refuse(name, "it is a program and its arguments"));
        }
        Ok(Some(words))
    }

    /// A program and its arguments, separated by spaces.
    pub(super) fn words(&self, name: &str) -> Result<Vec<String>, EnvironmentError> {
        self.optional_words(name)?
            .ok_or_else(|| self.refuse(name, "it has to be set"))
    }

    /// A model's name.
    pub(super) fn model(&self, name: &str) -> Result<String, EnvironmentError> {
        let model = self.text(name)?;
        check_model_name(&model).map_err(|problem| self.refuse(name, &problem.to_string()))?;
        Ok(model)
    }

    /// A number within bounds, when it is set.
    pub(super) fn optional_number<N>(
        &self,
        name: &str,
        bounds: RangeInclusive<N>,
    ) -> Result<Option<N>, EnvironmentError>
    where
        N: FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(text) = self.optional_text(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => {
                let problem = format!(
                    "it is a whole number from {} to {}",
                    bounds.start(),
                    bounds.end()
                );
                Err(self.refuse(name, &problem))
            }
        }
    }

    /// A number within bounds.
    pub(super) fn number<N>(
        &self,
        name: &str,
        bounds: RangeInclusive<N>,
    ) -> Result<N, EnvironmentError>
    where
        N: FromStr + PartialOrd + std::fmt::Display,
    {
        self.optional_number(name, bounds)?
            .ok_or_else(|| self.refuse(name, "it has to be set"))
    }

    /// A time in whole seconds within bounds.
    pub(super) fn seconds(
        &self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Duration, EnvironmentError> {
        self.number(name, bounds).map(Duration::from_secs)
    }

    /// A port, when it is set.
    pub(super) fn optional_port(&self, name: &str) -> Result<Option<u16>, EnvironmentError> {
        self.optional_number(name, 1..=u16::MAX)
    }
}
