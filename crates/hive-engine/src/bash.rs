//! What a shell command would do, from a real parse of it.
//!
//! A command line is taken apart into its simple commands: those of compounds, of substitutions,
//! behind wrappers such as `env` or `sudo`, and inside scripts given to `sh -c`. Whatever cannot be
//! parsed, or whose words are not known before it runs, is a [`Doubt`]: it never passes silently.
//! Nothing here decides; see [`crate::permission`].

mod collect;
mod safe;
mod words;
mod wrappers;

pub use wrappers::is_transparent;

pub use collect::judge;
pub use safe::{Safety, is_critical_removal, safety};

use std::path::PathBuf;

/// Longer command lines are not looked into.
pub const MAX_LENGTH: usize = 10_000;
/// Scripts inside scripts are followed this deep.
pub const MAX_DEPTH: usize = 6;

/// What is known about a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// As it was given.
    pub text: String,
    /// Every simple command that may run.
    pub commands: Vec<Simple>,
    /// What could not be proved.
    pub doubts: Vec<Doubt>,
    /// Directories that the shell may be in while it runs.
    pub cwds: Vec<PathBuf>,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Its words; `None` where a word is only known at run time.
    pub argv: Vec<Option<String>>,
    /// Variables set for it alone.
    pub variables: Vec<String>,
    /// Files that are read by redirection.
    pub reads: Vec<String>,
    /// Files that are written by redirection.
    pub writes: Vec<String>,
    /// Wrappers that it was found behind, outermost first.
    pub behind: Vec<String>,
    /// Whether its output becomes part of another command.
    pub is_substitution: bool,
    /// Whether its input comes from another command.
    pub has_piped_input: bool,
}

/// Why a command line cannot be proved harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The parser does not understand it.
    Unparsable(String),
    /// It is too long or too deep to look into.
    TooComplex,
    /// Control characters, which a terminal or another parser may read differently.
    ControlCharacter,
    /// A word that is only known at run time.
    Dynamic(String),
    /// A substitution.
    Substitution(String),
    /// A variable that changes what programs do.
    Variable(String),
    /// A function or alias definition: names no longer mean what they say.
    Definition(String),
    /// A construct that evaluates its text again.
    Evaluation(String),
    /// A connection by redirection (`/dev/tcp/…`).
    Network(String),
}

impl Doubt {
    /// In words, for the model.
    pub fn describe(&self) -> String {
        match self {
            Self::Unparsable(why) => format!("the command could not be parsed ({why})"),
            Self::TooComplex => "the command is too long or too deeply nested".into(),
            Self::ControlCharacter => "the command contains control characters".into(),
            Self::Dynamic(word) => format!("{word} is only known when the command runs"),
            Self::Substitution(text) => format!("it contains the substitution {text}"),
            Self::Variable(name) => format!("it sets {name}, which can change what programs do"),
            Self::Definition(name) => format!("it redefines {name}"),
            Self::Evaluation(text) => format!("{text} evaluates its text again"),
            Self::Network(target) => format!("it opens a connection to {target}"),
        }
    }
}

impl Simple {
    /// The command's name as written.
    pub fn name(&self) -> Option<&str> {
        self.argv.first()?.as_deref()
    }

    /// The name without its directory: what it is called by people who deny it.
    pub fn base_name(&self) -> Option<&str> {
        let name = self.name()?;
        Some(name.rsplit('/').next().unwrap_or(name))
    }

    /// The words joined with spaces, if all are known.
    pub fn text(&self) -> Option<String> {
        let words: Option<Vec<&str>> = self.argv.iter().map(|word| word.as_deref()).collect();
        Some(words?.join(" "))
    }

    /// The words joined with spaces; unknown ones are shown as `*`.
    pub fn text_with_gaps(&self) -> String {
        let words = self.argv.iter().map(|word| word.as_deref().unwrap_or("*"));
        words.collect::<Vec<_>>().join(" ")
    }
}
