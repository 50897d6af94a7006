//! An optional cage of the operating system around shell commands.
//!
//! The root is read-only, the workspace is writable, what decides which code `git` runs later stays
//! as it is, and there is no network unless it is allowed. Bubblewrap makes the better cage;
//! Landlock is used where bubblewrap is missing or may not make namespaces. Rules say what an agent
//! may do; the cage holds even when a command does something that no parser saw.

mod bubblewrap;
pub mod confine;
mod hooks;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use hooks::Hooks;

/// What the settings ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSettings {
    /// Whether commands are caged.
    pub enabled: bool,
    /// Whether to refuse commands when no cage is available.
    pub fail_if_unavailable: bool,
    /// Whether commands may use the network.
    pub allow_network: bool,
    /// Which cage.
    pub kind: Kind,
}

/// Which cage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The best that works here.
    #[default]
    Auto,
    /// Bubblewrap.
    Bubblewrap,
    /// Landlock.
    Landlock,
}

/// How commands are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// As they are.
    Off,
    /// In bubblewrap.
    Bubblewrap {
        /// The program.
        program: PathBuf,
        /// Whether commands may use the network.
        allow_network: bool,
    },
    /// Under Landlock, which this program puts on itself before it becomes the command.
    Landlock {
        /// Whether commands may use the network.
        allow_network: bool,
        /// Why not bubblewrap.
        why: String,
    },
    /// A cage was asked for and there is none.
    Unavailable {
        /// Whether commands are refused.
        is_required: bool,
        /// Why there is none.
        why: String,
    },
}

impl Sandbox {
    /// Finds the cage that the settings ask for, and tries it.
    pub fn find(settings: &SandboxSettings, path: Option<&str>) -> Self {
        if !settings.enabled {
            return Self::Off;
        }
        let allow_network = settings.allow_network;
        let bubblewrap = match settings.kind {
            Kind::Landlock => Err("sandbox.kind is landlock".to_owned()),
            Kind::Auto | Kind::Bubblewrap => bubblewrap::find(path, allow_network),
        };
        let why = match bubblewrap {
            Ok(program) => {
                return Self::Bubblewrap {
                    program,
                    allow_network,
                };
            }
            Err(why) => why,
        };
        let landlock = match settings.kind {
            Kind::Bubblewrap => Err("sandbox.kind is bubblewrap".to_owned()),
            Kind::Auto | Kind::Landlock => confine::check(allow_network),
        };
        match landlock {
            Ok(()) => Self::Landlock { allow_network, why },
            Err(no_landlock) => Self::Unavailable {
                is_required: settings.fail_if_unavailable,
                why: format!("{why}; {no_landlock}"),
            },
        }
    }

    /// What to say when there should be a cage and is none.
    pub fn warning(&self) -> Option<String> {
        let Self::Unavailable { is_required, why } = self else {
            return None;
        };
        Some(if *is_required {
            format!(
                "sandbox.failIfUnavailable is set and there is no sandbox ({why}): commands are refused"
            )
        } else {
            format!(
                "sandbox.enabled is set, but there is no sandbox ({why}): commands run without one"
            )
        })
    }

    /// In a few words, for people.
    pub fn describe(&self) -> String {
        let network = |allowed: bool| if allowed { "with" } else { "without" };
        match self {
            Self::Off => "off".to_owned(),
            Self::Bubblewrap { allow_network, .. } => {
                format!("bubblewrap, {} network", network(*allow_network))
            }
            Self::Landlock { allow_network, why } => {
                format!("landlock, {} network ({why})", network(*allow_network))
            }
            Self::Unavailable { why, .. } => format!("none ({why})"),
        }
    }

    /// How to run a program with its arguments; `None` when it may not run. `tmp` is a directory
    /// for its temporary files.
    pub fn words(
        &self,
        words: Vec<String>,
        cwd: &Path,
        roots: &[PathBuf],
        tmp: &Path,
    ) -> Option<Vec<String>> {
        let mut caged = match self {
            Self::Off
            | Self::Unavailable {
                is_required: false, ..
            } => return Some(words),
            Self::Unavailable {
                is_required: true, ..
            } => return None,
            Self::Bubblewrap {
                program,
                allow_network,
            } => bubblewrap::words(program, cwd, roots, *allow_network),
            Self::Landlock { allow_network, .. } => confine::words(roots, tmp, *allow_network),
        };
        caged.extend(words);
        Some(caged)
    }

    /// The directory for temporary files of a command, where it cannot have `/tmp`.
    pub fn own_tmp(&self, spill_dir: &Path) -> Option<PathBuf> {
        matches!(self, Self::Landlock { .. }).then(|| spill_dir.join("tmp"))
    }

    /// Remembers what a caged command may not change and no cage can keep from it.
    pub fn remember(&self, roots: &[PathBuf]) -> Option<Hooks> {
        match self {
            Self::Off | Self::Unavailable { .. } => None,
            Self::Bubblewrap { .. } | Self::Landlock { .. } => Some(Hooks::remember(roots)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cage_is_read_only_but_for_the_workspace() {
        let sandbox = Sandbox::Bubblewrap {
            program: "/usr/bin/bwrap".into(),
            allow_network: false,
        };
        let roots = [PathBuf::from("/proj")];
        let (cwd, tmp) = (Path::new("/proj"), Path::new("/t"));
        let line = |sandbox: &Sandbox| {
            let words = sandbox.words(vec!["id".into(), "-u".into()], cwd, &roots, tmp);
            words.unwrap().join(" ")
        };
        let caged = line(&sandbox);
        assert!(caged.starts_with("/usr/bin/bwrap --ro-bind / /"));
        assert!(caged.contains("--unshare-net") && caged.contains("--tmpfs /run"));
        assert!(
            caged.find("--bind /proj /proj").unwrap()
                < caged.find("--ro-bind-try /proj/.git/hooks").unwrap()
        );
        assert!(caged.ends_with("-- id -u"));
        let sandbox = Sandbox::Landlock {
            allow_network: true,
            why: String::new(),
        };
        assert_eq!(
            line(&sandbox),
            "/proc/self/exe confine --network --write /proj --write /t -- id -u"
        );
        assert_eq!(line(&Sandbox::Off), "id -u");
    }

    #[test]
    fn a_required_cage_that_is_missing_stops_commands() {
        let settings = SandboxSettings {
            enabled: true,
            fail_if_unavailable: true,
            allow_network: false,
            kind: Kind::Bubblewrap,
        };
        let sandbox = Sandbox::find(&settings, Some("/nowhere"));
        let warning = sandbox.warning().unwrap();
        assert!(
            warning.contains("bwrap") && warning.contains("refused"),
            "{warning}"
        );
        assert_eq!(
            sandbox.words(vec!["id".into()], Path::new("/"), &[], Path::new("/t")),
            None
        );
        let lenient = SandboxSettings {
            fail_if_unavailable: false,
            ..settings
        };
        let sandbox = Sandbox::find(&lenient, Some("/nowhere"));
        assert!(sandbox.warning().unwrap().contains("without one"));
        assert!(
            sandbox
                .words(vec!["id".into()], Path::new("/"), &[], Path::new("/t"))
                .is_some()
        );
        let off = Sandbox::find(&SandboxSettings::default(), Some("/nowhere"));
        assert_eq!((off.warning(), off), (None, Sandbox::Off));
    }
}
