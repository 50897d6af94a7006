//! The daemon of the background shell is the harness's to look after (B5).

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Harness, eventually, hive_with_agent};

/// A daemon that writes its pid and what it was told down, and then does `what`.
fn daemon(dir: &Path, what: &str) -> PathBuf {
    let program = dir.join("daemon");
    let record = dir.join("started").display().to_string();
    let told = "HIVE_BASH_SOCKET=$HIVE_BASH_SOCKET engine=$HIVE_ENGINE_ENV_FAKE_ENGINE_RECORD";
    let script = format!("#!/bin/sh\necho \"$$ {told}\" >> '{record}'\n{what}\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    program
}

/// A line for every start.
fn starts(dir: &Path) -> Vec<String> {
    let record = fs::read_to_string(dir.join("started")).unwrap_or_default();
    record.lines().map(str::to_owned).collect()
}

/// Waits for the daemon's so manyth start, and says which process it is.
async fn started(times: usize, dir: &Path, harness: &Harness) -> String {
    eventually("started", harness, async || {
        let start = starts(dir).get(times - 1)?.clone();
        Some(start.split(' ').next()?.to_owned())
    })
    .await
}

/// The process above another.
fn parent(pid: &str) -> Pid {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1;
    Pid::from_raw(fields.split(' ').nth(1).unwrap().parse().unwrap()).unwrap()
}

fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| state != "Z")
}

#[tokio::test]
async fn b5_a_daemon_that_ends_is_started_again() {
    let hive = hive_with_agent().await;
    let dir = tempfile::tempdir().unwrap();
    let program = daemon(dir.path(), "exit 1");
    let more = [("HIVE_BASH_DAEMON", program.to_str().unwrap())];
    let mut harness = Harness::start(&hive, &more);
    eventually("started three times", &harness, async || {
        (starts(dir.path()).len() >= 3).then_some(())
    })
    .await;
    let socket = harness.path("harness/bash.sock");
    let told = format!("HIVE_BASH_SOCKET={} engine=", socket.display());
    for start in starts(dir.path()) {
        assert!(start.ends_with(&told), "{start}");
    }
    harness.terminate();
    assert!(harness.ended().await.success());
}

#[tokio::test]
async fn b5_a_daemon_ends_with_its_harness_however_that_ends() {
    let hive = hive_with_agent().await;
    let dir = tempfile::tempdir().unwrap();
    let program = daemon(dir.path(), "exec sleep 1000000");
    let more = [("HIVE_BASH_DAEMON", program.to_str().unwrap())];
    let mut harness = Harness::start(&hive, &more);
    let pid = started(1, dir.path(), &harness).await;
    harness.kill().await;
    eventually("gone", &harness, async || (!is_running(&pid)).then_some(())).await;

    harness.start_again();
    let pid = started(2, dir.path(), &harness).await;
    assert!(is_running(&pid));
    harness.terminate();
    assert!(harness.ended().await.success());
    assert!(!is_running(&pid));
}

#[tokio::test]
async fn b5_a_daemon_that_outlived_guard_and_harness_is_ended_by_the_next() {
    let hive = hive_with_agent().await;
    let dir = tempfile::tempdir().unwrap();
    let program = daemon(dir.path(), "exec sleep 1000000");
    let more = [("HIVE_BASH_DAEMON", program.to_str().unwrap())];
    let mut harness = Harness::start(&hive, &more);
    let pid = started(1, dir.path(), &harness).await;
    let guard = parent(&pid);
    kill_process(guard, Signal::STOP).unwrap();
    harness.kill().await;
    kill_process(guard, Signal::KILL).unwrap();
    assert!(is_running(&pid), "nobody is left to end it");

    harness.start_again();
    started(2, dir.path(), &harness).await;
    assert!(!is_running(&pid));
    harness.terminate();
    assert!(harness.ended().await.success());
}
