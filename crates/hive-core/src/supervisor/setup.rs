//! What a hive has on this machine to run agents with.

use std::path::{Path, PathBuf};

use anyhow::Context;
use hive_runtime::{Machine, Runtimes, System, keeper::KeeperCommand, runtimes::ISOLATING};
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

/// What runtimes are made from on this machine.
pub(crate) fn machine() -> Machine {
    Machine {
        keeper: keeper_command(),
        system: System::of_host(),
        path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
    }
}

/// What `--runtime auto` means here, and why. Blocks while runtimes are tried.
pub(super) fn best(binaries: &Binaries, runtimes: &Runtimes) -> (host::Runtime, String) {
    if binaries.harness.is_none() {
        return (host::Runtime::None, binaries.no_harness());
    }
    match runtimes.best() {
        Some(kind) => (kind, format!("`{}` works here and isolates", kind.as_str())),
        None => {
            let why: Vec<String> = try_all(runtimes)
                .into_iter()
                .map(|state| format!("{}: {}", state.runtime.as_str(), state.problem))
                .collect();
            let why = format!(
                "NO ISOLATION: it may do whatever your user may, because nothing better works \
                 here ({})",
                why.join("; ")
            );
            (host::Runtime::Process, why)
        }
    }
}

/// Tries every runtime that isolates. Blocks.
pub(super) fn try_all(runtimes: &Runtimes) -> Vec<host::RuntimeState> {
    let states = ISOLATING.into_iter().map(|runtime| {
        let (problem, remedy) = match runtimes.check(runtime) {
            Ok(()) => (String::new(), String::new()),
            Err(unavailable) => (unavailable.why, unavailable.remedy),
        };
        host::RuntimeState {
            runtime,
            problem,
            remedy,
        }
    });
    states.collect()
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

    /// Why agents cannot be run here.
    pub(crate) fn no_harness(&self) -> String {
        format!(
            "there is no `hive` in {}, so you run the agent yourself on its socket",
            self.dir.display()
        )
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
