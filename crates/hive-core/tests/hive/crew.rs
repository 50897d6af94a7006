//! A harness that the tests write themselves: a shell script per agent.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use hive_runtime::{
    AgentDirs, AgentSpec, Command, Limits, Network, Owner, ProcessRuntime, Runtime, User,
    keeper::KeeperCommand,
};
use hive_testkit::hive::{Options, TestHive};
use serde_json::Value;
use tempfile::TempDir;

use crate::peer::{BINARY, Doors, eventually};

/// What an agent does unless the test says otherwise: it says that it is there, and waits.
pub(crate) const WAITS: &str = "echo $$ >> runs; while :; do sleep 1000 & wait; done";

/// A hive whose agents are scripts.
pub(crate) struct Crew {
    pub(crate) hive: TestHive,
    scripts: TempDir,
}

impl Crew {
    /// A hive with these further lines in `hive.toml`.
    pub(crate) async fn new(config: &str) -> Self {
        Self::led_by("", config).await
    }

    /// The same with a root agent of this name.
    pub(crate) async fn led_by(root: &str, config: &str) -> Self {
        let scripts = tempfile::tempdir().unwrap();
        let harness = write_harness(scripts.path());
        // Scripts are no programs that a container would have.
        let agents = "[agents]\nruntime = \"process\"\n";
        let config = match config.contains("[agents]\n") {
            true => config.replacen("[agents]\n", agents, 1),
            false => format!("{agents}{config}"),
        };
        let options = Options {
            config: format!(
                "[hive]\nroot_agent = \"{root}\"\n[engine]\ndefault = \"/bin/true\"\n{config}"
            ),
            env: env_of(&harness),
        };
        let hive = TestHive::start_with(options).await.unwrap();
        Self { hive, scripts }
    }

    /// The further environment of the daemon.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        env_of(&self.scripts.path().join("hive"))
    }

    /// Says what an agent does from its next start on.
    pub(crate) fn script(&self, agent: &str, script: &str) {
        fs::write(self.scripts.path().join(format!("{agent}.sh")), script).unwrap();
    }

    /// Spawns an agent that runs here.
    pub(crate) fn spawn(&self, agent: &str) -> Value {
        let spawned = self
            .hive
            .cli_json(&["spawn", agent, "--runtime", "process"]);
        spawned["agent"].clone()
    }

    /// Starts an agent behind the daemon's back: its process.
    pub(crate) fn start_unasked(&self, agent: &str) -> i32 {
        let keeper = KeeperCommand {
            program: BINARY.into(),
            args: vec!["keeper".into()],
        };
        let runtime = ProcessRuntime::new(self.hive.root().join("state/agents"), keeper);
        let state = self.dir(agent).join("state");
        fs::create_dir_all(&state).unwrap();
        let started = runtime.start(&AgentSpec {
            name: agent.parse().unwrap(),
            generation: 0,
            dirs: AgentDirs {
                harness: state.clone(),
                claude: state.clone(),
                home: state.clone(),
                run: state.clone(),
                state,
            },
            command: Command {
                program: "/bin/sleep".into(),
                args: vec!["1000".into()],
            },
            env: BTreeMap::new(),
            programs: Vec::new(),
            mounts: Vec::new(),
            network: Network::Host,
            owner: Owner::Daemon,
            user: User::default(),
            limits: Limits::default(),
        });
        let pid = started.unwrap().pid().unwrap();
        assert!(lives(pid.cast_signed()));
        pid.cast_signed()
    }

    /// An agent as `list` shows it.
    pub(crate) fn agent(&self, name: &str) -> Value {
        let list = self.hive.cli_json(&["list"]);
        let agents = list["agents"].as_array().unwrap();
        let agent = agents.iter().find(|agent| agent["name"] == name);
        agent.cloned().unwrap_or_default()
    }

    /// A file in an agent's state directory.
    pub(crate) fn file(&self, agent: &str, name: &str) -> PathBuf {
        self.dir(agent).join("state").join(name)
    }

    /// Everything of an agent.
    pub(crate) fn dir(&self, agent: &str) -> PathBuf {
        self.hive.root().join("state/agents").join(agent)
    }

    /// The processes of an agent's starts so far, once there are so many.
    pub(crate) fn runs(&self, agent: &str, count: usize) -> Vec<i32> {
        let file = self.file(agent, "runs");
        let read = || -> Vec<i32> {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.lines().map(|line| line.parse().unwrap()).collect()
        };
        eventually("the agent has started", || read().len() >= count);
        read()
    }

    /// Waits until an agent is in this state.
    pub(crate) fn becomes(&self, agent: &str, state: &str) -> Value {
        eventually(&format!("{agent} is {state}"), || {
            self.agent(agent)["state"] == state
        });
        self.agent(agent)
    }
}

fn env_of(harness: &Path) -> Vec<(String, String)> {
    vec![("HIVE_BIN".into(), harness.to_str().unwrap().to_owned())]
}

/// A harness that runs the script of the agent that it is.
pub(crate) fn write_harness(dir: &Path) -> PathBuf {
    let harness = dir.join("hive");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = serve ] || exit 64\nscript='{}'/$HIVE_LABEL.sh\n\
         [ -f \"$script\" ] || {{ {WAITS}; }}\n. \"$script\"\n",
        dir.display()
    );
    fs::write(&harness, text).unwrap();
    fs::set_permissions(&harness, fs::Permissions::from_mode(0o755)).unwrap();
    harness
}

/// Whether a process lives. One that ended and was not collected does not.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}
