//! An agent's directories, its environment, and the loop running beside a test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hive_harness::{control::orders::Orders, environment::Environment, serve};
use serde_json::Value;
use tempfile::TempDir;

use crate::host::FakeHost;

/// An agent to be run.
pub(crate) struct Rig {
    dir: TempDir,
    variables: Vec<(String, String)>,
    pub(crate) host: FakeHost,
    pub(crate) orders: Orders,
}

impl Rig {
    /// An agent with short pauses.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["state", "harness", "claude"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let engine = hive_testkit::engine::fake_engine().unwrap();
        let engine = engine.to_str().unwrap().to_owned();
        fs::create_dir(dir.path().join("sessions")).unwrap();
        let pairs = [
            ("HIVE_STATE_DIR", at("state")),
            ("HIVE_HARNESS_DIR", at("harness")),
            ("CLAUDE_CONFIG_DIR", at("claude")),
            ("HIVE_ENGINE", engine),
            ("HIVE_ENGINE_ENV_FAKE_ENGINE_SCRIPT", at("script")),
            ("HIVE_ENGINE_ENV_FAKE_ENGINE_RECORD", at("record")),
            ("HIVE_ENGINE_ENV_CLAUDE_CONFIG_DIR", at("sessions")),
            ("HIVE_LABEL", "ada".to_owned()),
            ("HIVE_BASH_MCP", at("no-bash")),
            ("HIVE_BASH_DAEMON", at("no-bash")),
            ("HIVE_POLL_MS", "0".to_owned()),
            ("HIVE_RATE_LIMIT_SLEEP_SECS", "0".to_owned()),
            ("HIVE_UNAVAILABLE_FIRST_MS", "1".to_owned()),
            ("HIVE_STOP_GRACE_SECS", "20".to_owned()),
            ("HIVE_LOGIN_LOOK_MS", "10".to_owned()),
        ];
        let variables = pairs.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let rig = Self {
            dir,
            variables,
            host: FakeHost::default(),
            orders: Orders::default(),
        };
        rig.script("");
        rig
    }

    /// The same with another variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A path below the agent's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the fake engine does.
    pub(crate) fn script(&self, text: &str) {
        fs::write(self.path("script"), text).unwrap();
    }

    /// The environment of the agent.
    pub(crate) fn environment(&self) -> Environment {
        let pairs = self.variables.iter();
        Environment::read(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
        .unwrap()
    }

    /// Runs the harness until `test` is over, and stops it then.
    pub(crate) async fn play(&self, test: impl Future<Output = ()>) {
        let environment = self.environment();
        let hive = Path::new(env!("CARGO_BIN_EXE_hive"));
        let running = serve::run(&environment, hive, &self.host, &self.orders);
        let test = async {
            test.await;
            self.orders.stop();
        };
        let (outcome, ()) = tokio::join!(running, test);
        outcome.unwrap();
    }

    /// What the fake engine recorded.
    fn record(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("record")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Every prompt that reached an engine.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let record = self.record();
        let prompts = record.iter().filter_map(|line| line["prompt"].as_str());
        prompts.map(str::to_owned).collect()
    }

    /// The arguments of every engine process.
    pub(crate) fn argvs(&self) -> Vec<String> {
        let record = self.record();
        let starts = record.iter().filter_map(|line| line["argv"].as_array());
        starts
            .map(|argv| {
                argv.iter()
                    .map(|arg| arg.as_str().unwrap())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    }

    /// The working directories of every engine process.
    pub(crate) fn cwds(&self) -> Vec<PathBuf> {
        let record = self.record();
        let cwds = record.iter().filter_map(|line| line["cwd"].as_str());
        cwds.map(PathBuf::from).collect()
    }
}
