//! Why a scenario cannot be used: which file, which line, which key, and what was probably meant.

use std::fmt;

use hive_wire::text::did_you_mean;

use super::builtin;

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file is not there or is no text.
    #[error("cannot read the scenario {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is neither a file nor a built-in scenario of this name.
    #[error("there is no scenario `{name}`: {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What to write instead.
        hint: String,
    },
    /// The text is no scenario.
    #[error(transparent)]
    Wrong(Box<Fault>),
}

/// What is wrong with a scenario's text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or the name of the scenario.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The line itself.
    pub source: String,
    /// The rule that the line belongs to, from 1.
    pub rule: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// The word that was probably meant.
    pub meant: Option<String>,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.message
        )?;
        if let Some(rule) = self.rule {
            write!(f, " (in rule {rule})")?;
        }
        if let Some(meant) = &self.meant {
            write!(f, "; did you mean `{meant}`?")?;
        }
        if !self.source.trim().is_empty() {
            let margin = self.line.to_string();
            let indent = " ".repeat(self.column.saturating_sub(1));
            write!(f, "\n {margin} | {}", self.source)?;
            write!(f, "\n {} | {indent}^", " ".repeat(margin.len()))?;
        }
        Ok(())
    }
}

impl ScenarioError {
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let source = text[line_start..].lines().next().unwrap_or_default();
        let message = error.message().trim().replace('\n', "; ");
        let headers = text.get(..line_start + source.len()).unwrap_or_default();
        let rules = headers
            .lines()
            .filter(|line| line.trim_start().starts_with("[[rule]]"))
            .count();
        Self::Wrong(Box::new(Fault {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            source: hive_wire::text::printable(&hive_wire::text::shorten(source, 200)),
            rule: (rules > 0).then_some(rules),
            meant: meant(&message),
            message: hive_wire::text::printable(&message),
        }))
    }

    pub(super) fn unknown_name(name: &str) -> Self {
        let names = || builtin::ALL.iter().map(|builtin| builtin.name);
        let hint = match did_you_mean(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "write the path of a file, or one of {}",
                names().collect::<Vec<_>>().join(", ")
            ),
        };
        Self::Unknown {
            name: name.to_owned(),
            hint,
        }
    }
}

/// What was probably meant by the word that serde complains of:
/// "unknown field `prot`, expected one of `bind`, `port`".
fn meant(message: &str) -> Option<String> {
    let list = message
        .strip_prefix("unknown field")
        .or_else(|| message.strip_prefix("unknown variant"))?;
    let mut quoted = list.split('`').skip(1).step_by(2);
    let wanted = quoted.next()?;
    did_you_mean(wanted, quoted).map(str::to_owned)
}
