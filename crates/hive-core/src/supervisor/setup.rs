//! What a hive has on this machine to run agents with.

use std::path::{Path, PathBuf};

use anyhow::Context;
use hive_runtime::keeper::KeeperCommand;
use hive_wire::host;

use crate::{
    config::Config,
    engine::{self, Choice, Places, is_program},
};

/// The name under which `hive-c0re` is a keeper ([`hive_runtime::keeper`]).
pub(crate) const KEEPER: &str = "keeper";

/// How this program is called as a keeper. The path of the running program itself: it stays good
/// when the file is replaced by a newer one.
pub(crate) fn keeper_command() -> KeeperCommand {
    KeeperCommand {
        program: "/proc/self/exe".into(),
        args: vec![KEEPER.to_owned()],
    }
}

/// The hive's own programs.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    /// The directory they lie in.
    pub(crate) dir: PathBuf,
    /// The harness, when it is there.
    pub(crate) harness: Option<PathBuf>,
    /// The rehearsed model, when it is there.
    pub(crate) rehearsal: Option<PathBuf>,
}

impl Binaries {
    /// Looks beside the running program; `HIVE_BIN` names another harness.
    ///
    /// # Errors
    /// When the system does not say where this program lies.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot tell where this program lies")?;
        let dir = own.parent().unwrap_or(Path::new("/")).to_path_buf();
        let named = std::env::var_os("HIVE_BIN").map(PathBuf::from);
        let beside = |name: &str| Some(dir.join(name)).filter(|file| is_program(file));
        Ok(Self {
            harness: named.or_else(|| beside("hive")),
            rehearsal: beside("hive-rehearsal"),
            dir,
        })
    }

    /// What `--runtime auto` means here, and why.
    pub(crate) fn runtime(&self) -> (host::Runtime, String) {
        match &self.harness {
            Some(harness) => (
                host::Runtime::Process,
                format!(
                    "{} runs as a plain process: no isolation, it may do whatever your user may",
                    harness.display()
                ),
            ),
            None => (
                host::Runtime::None,
                format!(
                    "there is no `hive` in {}, so you run the agent yourself on its socket",
                    self.dir.display()
                ),
            ),
        }
    }

    /// The engine that `wanted` means here.
    ///
    /// # Errors
    /// With what is missing.
    pub(crate) fn engine(&self, wanted: &str, config: &Config) -> Result<Choice, String> {
        let wanted = if wanted.is_empty() {
            &config.engine.default
        } else {
            wanted
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        engine::choose(
            wanted,
            Places {
                beside: &self.dir,
                path: &path,
            },
        )
    }
}
