//! The servers the benchmark starts: each is owned by a [`Server`] that stops it when dropped, so
//! that nothing is left behind whichever way a run ends. Also what `/proc` tells about one.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

const STOP_GRACE: Duration = Duration::from_secs(10);
const START_GRACE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// A server that has done nothing for so long is at rest: longer than a hive waits for a quiet moment.
const REST: Duration = Duration::from_millis(500);
/// How long that is waited for.
const REST_GRACE: Duration = Duration::from_secs(5);

/// A server process with its output in a log file.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    stop: Signal,
    log: PathBuf,
}

impl Server {
    /// Starts `command`; `stop` is the signal on which it ends by itself.
    ///
    /// It gets its own process group, so that Ctrl-C reaches the benchmark alone and the servers
    /// are stopped in order.
    pub(crate) fn start(mut command: Command, stop: Signal, log: PathBuf) -> Result<Self> {
        let output = File::create(&log).context("cannot create a log file")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child, stop, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` succeeds; fails early, with the end of the log, when the server dies.
    pub(crate) async fn ready(&mut self, mut ready: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let deadline = Instant::now() + START_GRACE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended at once ({status}): {}", tail(&self.log));
            }
            match ready().await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    return Err(error.context(format!("not ready: {}", tail(&self.log))));
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let asked = kill_process(Pid::from_child(&self.child), self.stop);
        let deadline = Instant::now() + STOP_GRACE;
        while asked.is_ok() && Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(POLL),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // Past its grace, or gone already: both calls only fail for a process that has ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a process uses, from `/proc`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) rss_bytes: u64,
    pub(crate) open_files: usize,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let ticks = cpu_ticks(&stat).context("no CPU time in /proc/PID/stat")?;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Self {
            cpu: Duration::from_millis(ticks * 1000 / per_second),
            rss_bytes: rss(&status).context("no VmRSS in /proc/PID/status")?,
            open_files: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        })
    }
}

/// The process and its direct children: PostgreSQL serves each connection in a process.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

/// The CPU time of a server and of the processes it serves connections in.
pub(crate) fn cpu_of_family(pid: u32) -> Duration {
    let processes = family(pid).into_iter();
    processes
        .filter_map(|pid| Usage::of(pid).ok())
        .map(|usage| usage.cpu)
        .sum()
}

/// Waits until a server has nothing left to do, within reason, and what it wrote is on disk: whoever
/// is measured next must not pay for it.
pub(crate) async fn at_rest(pid: u32) {
    let deadline = Instant::now() + REST_GRACE;
    let mut before = cpu_of_family(pid);
    while Instant::now() < deadline {
        tokio::time::sleep(REST).await;
        let now = cpu_of_family(pid);
        if now.saturating_sub(before) < REST / 50 {
            break;
        }
        before = now;
    }
    rustix::fs::sync();
}

/// The first of `names` that is on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Runs a short command to its end; what it printed on success, its complaint on failure.
pub(crate) fn run(mut command: Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} failed: {}",
            command.get_program().display(),
            complaint.trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}

/// User and system time of a `/proc/PID/stat` line, whose second field may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn rss(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_proc_lines() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 9 1 1";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(rss("Name:\tx\nVmRSS:\t   2048 kB\n"), Some(2 << 20));
        assert_eq!(rss("Name:\tx\n"), None);
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("60");
        let server = Server::start(command, Signal::TERM, dir.path().join("log")).unwrap();
        let pid = server.pid();
        assert!(Usage::of(pid).is_ok());
        drop(server);
        assert!(Usage::of(pid).is_err());
    }
}
