//! A runtime on directories of its own.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hive_runtime::{
    AgentDirs, AgentSpec, Command, Limits, Machine, Network, Owner, Runtime, Runtimes, System,
    User,
    conformance::{Subject, Witness},
    keeper::KeeperCommand,
};
use hive_wire::host;
use serde_json::Value;
use tempfile::TempDir;

/// Says that it is there, then waits without end.
pub(crate) const WAITS: &str = "echo ready >&9; while :; do sleep 1000 & wait; done";

/// What runs the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Process,
    Bwrap,
    Nspawn,
    Podman,
}

impl Kind {
    fn wire(self) -> host::Runtime {
        match self {
            Self::Process => host::Runtime::Process,
            Self::Bwrap => host::Runtime::Bwrap,
            Self::Nspawn => host::Runtime::Nspawn,
            Self::Podman => host::Runtime::Podman,
        }
    }
}

/// The keeper that was built for these tests.
pub(crate) fn keeper() -> KeeperCommand {
    KeeperCommand {
        program: env!("CARGO_BIN_EXE_hive-keeper").into(),
        args: Vec::new(),
    }
}

/// Agents on a directory of their own, which are killed when it goes.
pub(crate) struct Place {
    kind: Kind,
    dir: TempDir,
    agents: PathBuf,
}

impl Place {
    /// A place for this runtime, or `None` and a word why this machine has none.
    pub(crate) fn of(kind: Kind) -> Option<Self> {
        let place = Self::new(kind);
        match place.runtimes().check(kind.wire()) {
            Ok(()) => Some(place),
            Err(unavailable) => {
                eprintln!("SKIPPED: {kind:?} does not work here: {}", unavailable.why);
                assert!(
                    std::env::var_os("HIVE_REQUIRE_RUNTIMES").is_none(),
                    "HIVE_REQUIRE_RUNTIMES is set"
                );
                None
            }
        }
    }

    fn new(kind: Kind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join("agents");
        fs::create_dir(&agents).unwrap();
        Self { kind, dir, agents }
    }

    /// Where the agents' directories lie.
    pub(crate) fn path(&self) -> &Path {
        &self.agents
    }

    pub(crate) fn file(&self, agent: &str, name: &str) -> PathBuf {
        self.path().join(agent).join("runtime").join(name)
    }

    pub(crate) fn record(&self, agent: &str) -> Value {
        serde_json::from_slice(&fs::read(self.file(agent, "run.json")).unwrap()).unwrap()
    }

    pub(crate) fn runtimes(&self) -> Runtimes {
        let machine = Machine {
            keeper: keeper(),
            system: System::of_host(),
            path: "/usr/bin:/bin:/usr/sbin:/sbin".into(),
        };
        Runtimes::new(machine, self.path(), self.dir.path().join("trial"))
    }

    pub(crate) fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(self.runtimes().get(self.kind.wire()).unwrap())
    }

    /// A user of its own for each agent, where we may give one.
    fn owner(&self, name: &str) -> Owner {
        if self.kind == Kind::Process || !rustix::process::geteuid().is_root() {
            return Owner::Daemon;
        }
        let uid = 76_600 + name.bytes().fold(0, |sum, byte| sum * 3 + u32::from(byte)) % 1000;
        Owner::Own { uid }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let runtime = self.runtime();
        for instance in runtime.list().unwrap_or_default() {
            drop(runtime.stop(&instance.name, Duration::ZERO));
        }
    }
}

impl Subject for Place {
    fn handle(&self) -> Arc<dyn Runtime> {
        self.runtime()
    }

    fn agent(&self, name: &str, script: &str) -> AgentSpec {
        let owner = self.owner(name);
        let dir = |part: &str| {
            let dir = self.path().join(name).join(part);
            fs::create_dir_all(&dir).unwrap();
            if let Owner::Own { uid } = owner {
                chown(&dir, Some(uid), Some(uid)).unwrap();
            }
            dir
        };
        AgentSpec {
            name: name.parse().unwrap(),
            generation: 1,
            dirs: AgentDirs {
                state: dir("state"),
                harness: dir("harness"),
                claude: dir("claude"),
                home: dir("home"),
                run: dir("run"),
            },
            command: Command {
                program: "/bin/sh".into(),
                args: vec!["-c".into(), format!("{}{script}", Witness::PREAMBLE)],
            },
            env: BTreeMap::from([
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("LOUD".into(), "1".into()),
            ]),
            programs: Vec::new(),
            mounts: Vec::new(),
            network: Network::None,
            owner,
            user: User::default(),
            limits: Limits::default(),
        }
    }
}
