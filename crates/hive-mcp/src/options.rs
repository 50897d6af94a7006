//! What `hive mcp` is told by its environment.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::groups::Groups;

/// Where the agent's socket is inside a container.
const SOCKET: &str = "/run/hive/mcp.sock";
/// Where the agent's state is inside a container.
const STATE_DIR: &str = "/state";
/// Where the harness keeps its files inside a container.
const HARNESS_DIR: &str = "/harness";
/// Many calls are answered sooner than a sleeping process is woken, and this one has nothing else to
/// do. Long enough for a commit.
const STAY_AWAKE: Duration = Duration::from_micros(400);

/// How the server `hyperhive` is set up. The socket alone must be there.
#[derive(Debug, Clone)]
pub struct Options {
    /// The agent's own socket.
    pub socket: PathBuf,
    /// The agent's state; tools that keep a file there do without when there is none.
    pub state_dir: Option<PathBuf>,
    /// The harness's files: the journal and the wish for another turn go there if there are any.
    pub harness_dir: Option<PathBuf>,
    /// The groups whose tools are shown, where the harness says so; else the host is asked.
    pub groups: Option<Groups>,
    /// What the engine process that started this server is for.
    pub purpose: Purpose,
    /// How long the operator has to permit a call that the engine's rules leave open; 0 when
    /// nobody is asked.
    pub consent_seconds: u32,
    /// How long a call stays awake for its answer, where answers come that fast.
    pub stay_awake: Duration,
}

/// What an engine process is for, as the harness says in `HIVE_TURN_PURPOSE`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A turn, or somebody's own engine outside of the harness.
    #[default]
    Work,
    /// Writing notes before a compaction, or the compaction itself: mail that it took would be
    /// answered by nobody.
    Upkeep,
}

impl Options {
    /// The options of an agent whose socket is `socket`, with no directories and the defaults for
    /// all else.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            state_dir: None,
            harness_dir: None,
            groups: None,
            purpose: Purpose::default(),
            consent_seconds: 0,
            stay_awake: Duration::ZERO,
        }
    }

    /// Reads `HIVE_SOCKET`, `HIVE_STATE_DIR`, `HIVE_HARNESS_DIR`, `HIVE_TOOL_GROUPS`,
    /// `HIVE_TURN_PURPOSE` and `HIVE_CONSENT_SECS`. An empty value is an unset one.
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var_os(name))
    }

    fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let text = |name: &str| var(name).map(|value| value.to_string_lossy().into_owned());
        let mut options = Self::new(var("HIVE_SOCKET").unwrap_or_else(|| SOCKET.into()));
        options.stay_awake = STAY_AWAKE;
        let dir = |name, default: &str| Some(var(name).unwrap_or_else(|| default.into()).into());
        options.state_dir = dir("HIVE_STATE_DIR", STATE_DIR);
        options.harness_dir = dir("HIVE_HARNESS_DIR", HARNESS_DIR);
        if let Some(list) = text("HIVE_TOOL_GROUPS") {
            let (groups, unknown) = Groups::parse(&list);
            if !unknown.is_empty() {
                tracing::warn!(?unknown, "HIVE_TOOL_GROUPS names groups that do not exist");
            }
            options.groups = Some(groups);
        }
        if matches!(
            text("HIVE_TURN_PURPOSE").as_deref(),
            Some("checkpoint" | "compact")
        ) {
            options.purpose = Purpose::Upkeep;
        }
        if let Some(seconds) = text("HIVE_CONSENT_SECS").and_then(|text| text.parse().ok()) {
            options.consent_seconds = seconds;
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::BTreeSet};

    use super::*;

    fn options(vars: &[(&str, &str)]) -> Options {
        Options::from_vars(|name| {
            let value = vars.iter().find(|(known, _)| *known == name)?.1;
            Some(value.into())
        })
    }

    #[test]
    fn without_a_word_it_is_a_container() {
        for vars in [&[][..], &[("HIVE_SOCKET", ""), ("HIVE_TURN_PURPOSE", "")]] {
            let options = options(vars);
            assert_eq!(options.socket, PathBuf::from("/run/hive/mcp.sock"));
            assert_eq!(options.state_dir, Some("/state".into()));
            assert_eq!(options.harness_dir, Some("/harness".into()));
            assert_eq!(options.groups, None);
            assert_eq!(options.purpose, Purpose::Work);
        }
    }

    #[test]
    fn upkeep_is_known_by_its_words() {
        for (word, purpose) in [
            ("checkpoint", Purpose::Upkeep),
            ("compact", Purpose::Upkeep),
            ("mail", Purpose::Work),
            ("continue", Purpose::Work),
        ] {
            let options = options(&[("HIVE_TURN_PURPOSE", word)]);
            assert_eq!(options.purpose, purpose, "{word}");
        }
    }

    #[test]
    fn the_docs_list_every_variable_that_is_read() {
        let docs = include_str!("../../../docs/mcp.md");
        let read = RefCell::new(BTreeSet::new());
        Options::from_vars(|name| {
            read.borrow_mut().insert(name.to_owned());
            None
        });
        let listed = docs.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("| `HIVE_")?.split_once('`')?;
            Some(format!("HIVE_{name}"))
        });
        assert_eq!(listed.collect::<BTreeSet<_>>(), read.into_inner());
    }
}
