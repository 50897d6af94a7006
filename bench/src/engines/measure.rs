//! One run of a program: how long, how much CPU, how much memory.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use tokio::{io::AsyncWriteExt as _, process::Command};

/// How often the memory is looked at. The kernel keeps the highest, so that only growth within the
/// last moment before the end is missed.
const LOOK: Duration = Duration::from_millis(1);
/// The longest run.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program with what it is told.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) stdin: String,
}

/// What a run took.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) wall: Duration,
    /// User and system time, that of its children included.
    pub(super) cpu: Duration,
    /// The highest resident memory of it and its children together.
    pub(super) peak_bytes: u64,
    pub(super) output: String,
}

/// Runs it to its end; nothing else may be run meanwhile.
pub(super) async fn run(job: Job) -> Result<Run> {
    let Job { mut command, stdin } = job;
    let cpu_before = children_cpu()?;
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start it")?;
    let pid = child.id().context("it has no id")?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input says so by its exit code.
        input.write_all(stdin.as_bytes()).await.ok();
    }
    let ending = child.wait_with_output();
    tokio::pin!(ending);
    let mut peak_bytes = 0;
    let output = loop {
        tokio::select! {
            output = &mut ending => break output?,
            () = tokio::time::sleep(LOOK) => peak_bytes = peak_bytes.max(memory_of(pid)),
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "it took longer than {PATIENCE:?}"
        );
    };
    let wall = began.elapsed();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "it ended with {}: {} {}",
        output.status,
        end_of(&said),
        end_of(&String::from_utf8_lossy(&output.stderr))
    );
    Ok(Run {
        wall,
        cpu: children_cpu()?.saturating_sub(cpu_before),
        peak_bytes,
        output: said,
    })
}

fn end_of(text: &str) -> String {
    let text = text.trim();
    let start = text.ceil_char_boundary(text.len().saturating_sub(400));
    text[start..].to_owned()
}

/// What all children that have ended used.
fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

/// The highest memory so far of a process and everything below it.
fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    kib.unwrap_or(0) * 1024 + below.map(memory_of).sum::<u64>()
}
