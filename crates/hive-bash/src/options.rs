//! How the daemon and the bridge are set up.

use std::{ffi::OsString, path::PathBuf};

/// Where the daemon listens inside a container.
const SOCKET: &str = "/run/hive-bash/socket";

/// What the daemon is told by its environment.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub socket: PathBuf,
    /// The agent's own socket, for the news about tasks.
    pub hive_socket: PathBuf,
    /// Where commands run.
    pub state_dir: PathBuf,
    /// Where records, output and loose ends go.
    pub harness_dir: PathBuf,
    /// Whether commands get the quiet `cargo`.
    pub short_cargo_messages: bool,
    /// How many tasks may run at once.
    pub max_running: usize,
    /// How long one stream's file may become, in bytes.
    pub max_output: u64,
    /// Further variables that commands may see.
    pub keep_env: Vec<String>,
}

impl Options {
    /// Reads `HIVE_BASH_SOCKET`, `HIVE_SOCKET`, `HIVE_STATE_DIR`, `HIVE_HARNESS_DIR`,
    /// `HIVE_CARGO_SHORT_MESSAGES`, `HIVE_BASH_MAX_TASKS`, `HIVE_BASH_MAX_OUTPUT_BYTES` and
    /// `HIVE_BASH_KEEP_ENV`. An empty value is an unset one.
    ///
    /// # Errors
    /// When a number or a switch cannot be read; with its name.
    pub fn from_env() -> anyhow::Result<Self> {
        Self::from_vars(|name| std::env::var_os(name))
    }

    fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let path = |name: &str, default: &str| {
            PathBuf::from(var(name).unwrap_or_else(|| OsString::from(default)))
        };
        let text = |name: &str| var(name).map(|value| value.to_string_lossy().into_owned());
        let number = |name: &str, default: u64, least: u64| match text(name) {
            None => Ok(default),
            Some(word) => match word.parse() {
                Ok(number) if number >= least => Ok(number),
                _ => anyhow::bail!("{name}={word} is no number of at least {least}"),
            },
        };
        let keep = text("HIVE_BASH_KEEP_ENV").unwrap_or_default();
        Ok(Self {
            socket: path("HIVE_BASH_SOCKET", SOCKET),
            hive_socket: path("HIVE_SOCKET", "/run/hive/mcp.sock"),
            state_dir: path("HIVE_STATE_DIR", "/state"),
            harness_dir: path("HIVE_HARNESS_DIR", "/harness"),
            short_cargo_messages: match text("HIVE_CARGO_SHORT_MESSAGES").as_deref() {
                None | Some("1" | "true" | "on") => true,
                Some("0" | "false" | "off") => false,
                Some(word) => {
                    anyhow::bail!("HIVE_CARGO_SHORT_MESSAGES={word} is neither true nor false")
                }
            },
            max_running: usize::try_from(number("HIVE_BASH_MAX_TASKS", 16, 1)?)?,
            max_output: number("HIVE_BASH_MAX_OUTPUT_BYTES", 16 * 1024 * 1024, 64 * 1024)?,
            keep_env: keep
                .split([',', ' '])
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        })
    }

    /// Where the records and the output of tasks are.
    pub fn tasks_dir(&self) -> PathBuf {
        self.harness_dir.join("bash-tasks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(vars: &[(&str, &str)]) -> anyhow::Result<Options> {
        Options::from_vars(|name| {
            let value = vars.iter().find(|(known, _)| *known == name)?.1;
            Some(value.into())
        })
    }

    #[test]
    fn the_defaults_are_those_of_a_container() {
        let options = options(&[("HIVE_BASH_SOCKET", "")]).unwrap();
        assert_eq!(options.socket, PathBuf::from("/run/hive-bash/socket"));
        assert_eq!(options.tasks_dir(), PathBuf::from("/harness/bash-tasks"));
        assert!(options.short_cargo_messages);
        assert_eq!(options.max_running, 16);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (name, value) in [
            ("HIVE_BASH_MAX_TASKS", "many"),
            ("HIVE_BASH_MAX_TASKS", "0"),
            ("HIVE_BASH_MAX_OUTPUT_BYTES", "10"),
            ("HIVE_CARGO_SHORT_MESSAGES", "perhaps"),
        ] {
            let error = options(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
