//! An optional cage of the operating system around shell commands.
//!
//! With bubblewrap: the root is read-only, the workspace is writable except for the parts of `.git`
//! that decide which code runs, and there is no network unless it is allowed. Rules say what an
//! agent may do; the cage holds even when a command does something that no parser saw.

use std::path::{Path, PathBuf};

use serde::Deserialize;

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
    /// A cage was asked for and there is none.
    Unavailable {
        /// Whether commands are refused.
        is_required: bool,
    },
}

/// A program with its arguments.
pub type CommandLine = (PathBuf, Vec<String>);

impl Sandbox {
    /// Finds the cage that the settings ask for.
    pub fn find(settings: &SandboxSettings, path: Option<&str>) -> Self {
        if !settings.enabled {
            return Self::Off;
        }
        let found = path
            .unwrap_or("/usr/bin:/bin")
            .split(':')
            .map(|dir| Path::new(dir).join("bwrap"))
            .find(|program| program.is_file());
        match found {
            Some(program) => Self::Bubblewrap {
                program,
                allow_network: settings.allow_network,
            },
            None => Self::Unavailable {
                is_required: settings.fail_if_unavailable,
            },
        }
    }

    /// What to say when there should be a cage and is none.
    pub fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable { is_required: false } => Some(
                "sandbox.enabled is set, but bubblewrap (bwrap) is not installed: commands run \
                 without a sandbox",
            ),
            Self::Unavailable { is_required: true } => Some(
                "sandbox.failIfUnavailable is set and bubblewrap (bwrap) is not installed: \
                 commands are refused",
            ),
            Self::Off | Self::Bubblewrap { .. } => None,
        }
    }

    /// How to run `script` with bash; `None` when it may not run.
    pub fn command(&self, script: &str, cwd: &Path, roots: &[PathBuf]) -> Option<CommandLine> {
        let bash = || {
            vec![
                "--noprofile".into(),
                "--norc".into(),
                "-c".into(),
                script.to_owned(),
            ]
        };
        match self {
            Self::Off | Self::Unavailable { is_required: false } => {
                Some((PathBuf::from("bash"), bash()))
            }
            Self::Unavailable { is_required: true } => None,
            Self::Bubblewrap {
                program,
                allow_network,
            } => {
                let mut args: Vec<String> = [
                    "--ro-bind",
                    "/",
                    "/",
                    "--dev",
                    "/dev",
                    "--proc",
                    "/proc",
                    "--tmpfs",
                    "/tmp",
                    "--unshare-pid",
                    "--unshare-ipc",
                    "--die-with-parent",
                    "--new-session",
                ]
                .map(str::to_owned)
                .to_vec();
                if !allow_network {
                    args.push("--unshare-net".into());
                }
                for root in roots {
                    let root = root.to_string_lossy();
                    args.extend(["--bind".into(), root.to_string(), root.to_string()]);
                    for part in [".git/hooks", ".git/config", ".claude"] {
                        let path = format!("{root}/{part}");
                        args.extend(["--ro-bind-try".into(), path.clone(), path]);
                    }
                }
                args.extend(["--chdir".into(), cwd.to_string_lossy().into_owned()]);
                args.extend(["--".into(), "bash".into()]);
                args.extend(bash());
                Some((program.clone(), args))
            }
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
        let (_, args) = sandbox.command("id", Path::new("/proj"), &roots).unwrap();
        let line = args.join(" ");
        assert!(line.contains("--ro-bind / /"));
        assert!(line.contains("--unshare-net"));
        assert!(
            line.find("--bind /proj /proj").unwrap()
                < line.find("--ro-bind-try /proj/.git/hooks").unwrap()
        );
        assert!(line.ends_with("-- bash --noprofile --norc -c id"));
    }

    #[test]
    fn a_required_cage_that_is_missing_stops_commands() {
        let settings = SandboxSettings {
            enabled: true,
            fail_if_unavailable: true,
            allow_network: false,
        };
        let sandbox = Sandbox::find(&settings, Some("/nowhere"));
        assert!(sandbox.warning().is_some());
        assert_eq!(sandbox.command("id", Path::new("/"), &[]), None);
        let off = Sandbox::find(&SandboxSettings::default(), Some("/nowhere"));
        assert_eq!((off.warning(), off), (None, Sandbox::Off));
    }
}
