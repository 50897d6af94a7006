//! One agent of a [`TestHive`] with a harness of its own: `hive serve`, started, killed and started
//! again in the same directories.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::{binary, hive::TestHive};

/// How long a harness may take to stop after it was told to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of a harness's log an error shows.
const LOG_LINES: usize = 40;

/// An agent's directories and the harness that runs in them. Killed when it is dropped.
#[derive(Debug)]
pub struct Harness {
    name: String,
    dir: PathBuf,
    socket: PathBuf,
    program: PathBuf,
    variables: Vec<(String, String)>,
    child: Option<Child>,
}

impl Harness {
    /// Makes an agent in the hive, with directories below the hive's own. Nothing runs yet.
    ///
    /// # Errors
    /// When the daemon refuses, or there is no `hive` to start.
    pub async fn new(hive: &TestHive, name: &str, engine: &Path) -> anyhow::Result<Self> {
        hive.spawn_agent(name).await?;
        let dir = hive.root().join("harnesses").join(name);
        for part in ["state", "harness", "claude", "home"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let harness = Self {
            name: name.to_owned(),
            socket: hive.agent_socket(name),
            program: binary::find("hive", "HIVE_BIN", "-p hive-harness --bin hive")?,
            variables: Vec::new(),
            child: None,
            dir,
        };
        let engine = engine.to_str().context("the engine's path is no UTF-8")?;
        Ok(harness.with("HIVE_ENGINE", engine))
    }

    /// Sets a variable of the harness from its next start on.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A path in the agent's directories: `state`, `harness`, `claude`, `home`, `log`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The harness's process, when it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Starts the harness.
    ///
    /// # Errors
    /// When it runs already or cannot be started.
    pub fn start(&mut self) -> anyhow::Result<()> {
        ensure!(self.child.is_none(), "the harness runs already");
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("log"))?;
        let child = Command::new(&self.program)
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("CLAUDE_CONFIG_DIR", self.path("claude"))
            .env("HIVE_SOCKET", &self.socket)
            .env("HIVE_STATE_DIR", self.path("state"))
            .env("HIVE_HARNESS_DIR", self.path("harness"))
            .env("HIVE_LABEL", &self.name)
            .env("HIVE_BASH_MCP", "no-bash-here")
            .env("HIVE_BASH_DAEMON", "no-bash-here")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Kills the harness with SIGKILL, if it runs, and waits until it is gone.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Tells the harness to stop with SIGTERM and waits until it has.
    ///
    /// # Errors
    /// When it does not stop in time, or not with exit code 0.
    pub async fn terminate(&mut self) -> anyhow::Result<()> {
        let pid = self.pid().context("the harness does not run")?;
        let pid = Pid::from_raw(i32::try_from(pid)?).context("a process has an id")?;
        kill_process(pid, Signal::TERM)?;
        let mut child = self.child.take().context("the harness does not run")?;
        let Ok(status) = tokio::time::timeout(PATIENCE, child.wait()).await else {
            bail!(
                "still there {PATIENCE:?} after SIGTERM\n{}",
                self.log_tail()
            );
        };
        let status = status?;
        ensure!(
            status.success(),
            "after SIGTERM: {status}\n{}",
            self.log_tail()
        );
        Ok(())
    }

    /// How the harness ended, when it did so by itself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        Ok(child.try_wait()?)
    }

    /// The end of the harness's log.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.path("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        format!("--- end of {}\n{tail}\n---", self.path("log").display())
    }
}
