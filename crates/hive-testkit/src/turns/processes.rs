//! What `/proc` tells: which processes belong to a hive, and what they use.

use std::{fs, path::Path};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

use super::log::Usage;

/// The processes whose command line or environment names a directory, this one left aside.
pub(super) fn naming(dir: &Path) -> Vec<u32> {
    let needle = dir.as_os_str().as_encoded_bytes();
    let names = |pid: u32, file: &str| {
        // It may be gone by now.
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(needle.len()).any(|window| window == needle)
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter(|pid| *pid != std::process::id());
    pids.filter(|pid| names(*pid, "cmdline") || names(*pid, "environ"))
        .collect()
}

/// The children of a process, those included that have ended and were not waited for.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let lists: Vec<_> = lists.flatten().collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// What a process is, in a line.
pub(super) fn describe(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let line: String = line.chars().take(200).collect();
    format!("process {pid}: {}", line.trim())
}

/// Kills a process with SIGKILL, unless it is gone already.
pub(super) fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Between finding it and this it may have ended: then there is nothing to kill.
        kill_process(pid, Signal::KILL).ok();
    }
}

/// What a process uses now.
///
/// # Errors
/// When there is no such process.
pub(super) fn usage(name: &str, pid: u32) -> anyhow::Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let memory = memory.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
    let files = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    Ok(Usage {
        name: name.to_owned(),
        pid,
        files: u64::try_from(files)?,
        memory_kib: memory.context("no RssAnon in /proc/PID/status")?,
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_found_by_what_it_names_and_gone_when_it_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep")
            .arg("60")
            .env("SOMEWHERE", dir.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(naming(dir.path()), [child.id()]);
        assert!(children(std::process::id()).contains(&child.id()));
        assert!(describe(child.id()).contains("sleep 60"));
        let used = usage("sleep", child.id()).unwrap();
        assert!(used.files >= 1 && used.memory_kib > 0, "{used:?}");
        kill(child.id());
        child.wait().unwrap();
        assert_eq!(naming(dir.path()), [0; 0]);
    }
}
