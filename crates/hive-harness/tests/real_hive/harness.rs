//! A harness as a process of its own.

use std::{
    fs,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use hive_testkit::hive::TestHive;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long anything may take before the test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);
/// How often something that tells nobody of itself is looked at.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A hive with the agent `ada`, who runs wherever she likes.
pub(crate) async fn hive_with_agent() -> TestHive {
    let hive = TestHive::start().await.unwrap();
    hive.spawn_agent("ada").await.unwrap();
    hive
}

/// Looks until there is something to find.
pub(crate) async fn eventually<T>(
    what: &str,
    harness: &Harness,
    look: impl AsyncFn() -> Option<T>,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "never {what}\n{}", harness.log());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// `hive serve` with the fake engine.
pub(crate) struct Harness {
    dir: TempDir,
    socket: PathBuf,
    more: Vec<(String, String)>,
    child: Option<Child>,
}

impl Harness {
    pub(crate) fn start(hive: &TestHive, more: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["state", "harness", "claude"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut harness = Self {
            dir,
            socket: hive.agent_socket("ada"),
            more: more.iter().map(own).collect(),
            child: None,
        };
        harness.start_again();
        harness
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts it in the same directories.
    pub(crate) fn start_again(&mut self) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_hive"))
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("HIVE_SOCKET", &self.socket)
            .env("HIVE_STATE_DIR", self.path("state"))
            .env("HIVE_HARNESS_DIR", self.path("harness"))
            .env("CLAUDE_CONFIG_DIR", self.path("claude"))
            .env("HIVE_LABEL", "ada")
            .env("HIVE_ENGINE", hive_testkit::engine::fake_engine().unwrap())
            .env("HIVE_ENGINE_ENV_FAKE_ENGINE_RECORD", self.path("record"))
            .env("HIVE_BASH_MCP", "no-bash-here")
            .env("HIVE_BASH_DAEMON", "no-bash-here")
            .envs(self.more.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    fn pid(&self) -> Pid {
        let pid = self.child.as_ref().unwrap().id().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        self.child.take().unwrap().kill().await.unwrap();
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        kill_process(self.pid(), Signal::TERM).unwrap();
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        tokio::time::timeout(PATIENCE, child.wait())
            .await
            .unwrap()
            .unwrap()
    }

    /// What it logged, for when something went wrong.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Every prompt that reached an engine.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("record")).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter_map(|line| Some(line["prompt"].as_str()?.to_owned()))
            .collect()
    }

    pub(crate) async fn wait_for_prompts(&self, count: usize) {
        eventually("a prompt", self, async || {
            (self.prompts().len() >= count).then_some(())
        })
        .await;
    }

    /// The memory it holds.
    pub(crate) fn rss_kib(&self) -> u64 {
        let pid = self.child.as_ref().unwrap().id().unwrap();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // Its guard ends what it runs; the harness itself must be gone before its directory is.
        if let Some(child) = &mut self.child {
            child.start_kill().ok();
            while let Ok(None) = child.try_wait() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
