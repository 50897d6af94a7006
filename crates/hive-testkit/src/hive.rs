//! A whole hive on a directory of its own: the real daemon, started, killed and started again.
//!
//! The daemon's log goes to a file. When it does not come up, or the test panics, its end is shown.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use hive_runtime::{Machine, Runtimes, System, keeper::KeeperCommand};
use hive_wire::{
    client::{Client, Options as ClientOptions},
    host::{Info, Spawn},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long a daemon may take to answer after it was started, and to stop after it was told to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a daemon that is coming up is asked.
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// How much of the daemon's log an error shows.
const LOG_LINES: usize = 60;

/// What a hive is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The text of its `hive.toml`.
    pub config: String,
    /// Further environment of the daemon.
    pub env: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: "[hive]\nroot_agent = \"\"\n".to_owned(),
            env: Vec::new(),
        }
    }
}

/// How a start went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The daemon answers.
    Ready,
    /// It ended before it did.
    Died(ExitStatus),
}

/// A hive that is killed and removed when it is dropped.
#[derive(Debug)]
pub struct TestHive {
    root: TempDir,
    binary: PathBuf,
    env: Vec<(String, String)>,
    daemon: Option<Child>,
}

impl TestHive {
    /// A running hive without agents.
    ///
    /// # Errors
    /// When there is no daemon to start, or it does not come up.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(Options::default()).await
    }

    /// A running hive with these options.
    ///
    /// # Errors
    /// When there is no daemon to start, or it does not come up.
    pub async fn start_with(options: Options) -> anyhow::Result<Self> {
        let root = tempfile::Builder::new().prefix("hive").tempdir()?;
        fs::write(root.path().join("hive.toml"), &options.config)?;
        let mut hive = Self {
            root,
            binary: find_daemon()?,
            env: options.env,
            daemon: None,
        };
        hive.restart().await?;
        Ok(hive)
    }

    /// The hive's directory.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The daemon's process, when it runs.
    pub fn pid(&self) -> Option<u32> {
        self.daemon.as_ref().and_then(Child::id)
    }

    /// Sets the daemon's further environment from the next start on.
    pub fn set_env(&mut self, env: Vec<(String, String)>) {
        self.env = env;
    }

    /// The operator's admin socket.
    pub fn host_socket(&self) -> PathBuf {
        self.root().join("run/host.sock")
    }

    /// An agent's own socket.
    pub fn agent_socket(&self, name: &str) -> PathBuf {
        self.root().join("run/agents").join(name).join("mcp.sock")
    }

    /// A client of the admin socket.
    pub fn host_client(&self) -> Client {
        Client::new(self.host_socket(), ClientOptions::default())
    }

    /// A client of an agent's socket.
    pub fn agent_client(&self, name: &str) -> Client {
        Client::new(self.agent_socket(name), ClientOptions::default())
    }

    /// Registers an agent that runs nowhere: it has a socket and an inbox.
    ///
    /// # Errors
    /// When the daemon refuses.
    pub async fn spawn_agent(&self, name: &str) -> anyhow::Result<()> {
        let spawn = Spawn::elsewhere(name.parse()?);
        self.host_client().call(&spawn).await?;
        Ok(())
    }

    /// Starts the daemon without waiting for it.
    ///
    /// # Errors
    /// When it runs already or cannot be started.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        ensure!(self.daemon.is_none(), "the daemon runs already");
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())?;
        let daemon = Command::new(&self.binary)
            .arg("--root")
            .arg(self.root())
            .args(["serve", "--port", "0"])
            .without_keys()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.root())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Waits until the daemon that was launched answers, or has ended.
    ///
    /// # Errors
    /// When it does neither in time.
    pub async fn ready(&mut self) -> anyhow::Result<Start> {
        let client = self.host_client();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let daemon = self.daemon.as_mut().context("the daemon was not started")?;
            if let Some(status) = daemon.try_wait()? {
                self.daemon = None;
                return Ok(Start::Died(status));
            }
            match client.call_within(&Info {}, PATIENCE).await {
                Ok(info) if Some(info.pid) == daemon.id() => return Ok(Start::Ready),
                Ok(info) => bail!("process {} answers at {}", info.pid, self.root().display()),
                Err(error) if Instant::now() > deadline => {
                    return Err(error).with_context(|| {
                        format!("no answer after {PATIENCE:?}\n{}", self.log_tail())
                    });
                }
                // It binds its socket some time after it was started: there is no event to wait
                // for before the socket is there.
                Err(_) => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Starts the daemon (again) and waits until it answers.
    ///
    /// # Errors
    /// When it does not come up; with the end of its log.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.kill().await?;
        self.launch()?;
        match self.ready().await? {
            Start::Ready => Ok(()),
            Start::Died(status) => bail!("the daemon ended: {status}\n{}", self.log_tail()),
        }
    }

    /// Kills the daemon with SIGKILL, if it runs, and waits until it is gone.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().await?;
        }
        Ok(())
    }

    /// Tells the daemon to stop with SIGTERM and waits until it has.
    ///
    /// # Errors
    /// When it does not stop in time, or not with exit code 0.
    pub async fn terminate(&mut self) -> anyhow::Result<()> {
        let pid = self.pid().context("the daemon does not run")?;
        let pid = Pid::from_raw(i32::try_from(pid)?).context("a process has an id")?;
        kill_process(pid, Signal::TERM)?;
        let Ok(status) = tokio::time::timeout(PATIENCE, self.died()).await else {
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

    /// Waits until the daemon ends by itself. Dropped before that, it changes nothing.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn died(&mut self) -> anyhow::Result<ExitStatus> {
        let daemon = self.daemon.as_mut().context("the daemon does not run")?;
        let status = daemon.wait().await?;
        self.daemon = None;
        Ok(status)
    }

    /// The end of the daemon's log.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        format!("--- end of {}\n{tail}\n---", self.log().display())
    }

    /// Kills the daemon and leaves the hive's directory behind, for somebody to look at.
    ///
    /// # Errors
    /// Those of [`Self::kill`].
    pub async fn keep(&mut self) -> anyhow::Result<PathBuf> {
        self.kill().await?;
        self.root.disable_cleanup(true);
        Ok(self.root().to_path_buf())
    }

    fn log(&self) -> PathBuf {
        self.root().join("daemon.log")
    }
}

impl Drop for TestHive {
    #[expect(
        clippy::print_stderr,
        reason = "a failing test shows what the daemon said"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
        if let Some(daemon) = &mut self.daemon {
            if let Err(error) = daemon.start_kill() {
                eprintln!("cannot kill the daemon: {error}");
            }
            // Its directory goes next, and it must not write there any more.
            while let Ok(None) = daemon.try_wait() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if let Err(error) = stop_agents(self.root()) {
            eprintln!("cannot stop the agents: {error}");
        }
    }
}

/// Stops what a daemon on this directory left running: agents outlive it.
///
/// # Errors
/// When one cannot be stopped.
pub fn stop_agents(root: &Path) -> Result<(), hive_runtime::RuntimeError> {
    // Nothing is started, so that it does not matter what a keeper is.
    let keeper = KeeperCommand {
        program: PathBuf::new(),
        args: Vec::new(),
    };
    let machine = Machine {
        keeper,
        system: System::of_host(),
        path: std::env::var_os("PATH").unwrap_or_default(),
    };
    let runtimes = Runtimes::new(
        machine,
        &root.join("state/agents"),
        root.join("state/trial"),
    );
    for runtime in runtimes.iter() {
        for agent in runtime.list()? {
            runtime.stop(&agent.name, Duration::ZERO)?;
        }
    }
    Ok(())
}

/// Keeps the keys of whoever runs the tests from the hive under test.
trait WithoutKeys {
    fn without_keys(&mut self) -> &mut Self;
}

impl WithoutKeys for Command {
    fn without_keys(&mut self) -> &mut Self {
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("ANTHROPIC_") || text.starts_with("CLAUDE_CODE_") {
                self.env_remove(&name);
            }
        }
        self
    }
}

/// The daemon's binary: `HIVE_C0RE_BIN`, or what cargo built next to this executable.
fn find_daemon() -> anyhow::Result<PathBuf> {
    let build = "-p hive-core --bin hive-c0re --features failpoints";
    crate::binary::find("hive-c0re", "HIVE_C0RE_BIN", build)
}
