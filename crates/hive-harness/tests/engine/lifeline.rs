//! When a harness is gone, however it went, its engine and the engine's tools are gone too.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use hive_testkit::waiting::until;
use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, WAYS, Way, fake, is_running, run, touched};

/// Set in the process that plays the harness which is to be killed.
const PLAY: &str = "HIVE_TEST_PLAY_HARNESS";

/// Runs this test binary once more, as a harness with a turn that hangs.
fn harness(rig: &Rig, test: &str) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test, "--nocapture"])
        .env(PLAY, rig.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the harness")
}

fn engine_pid(record: &Path) -> Option<u64> {
    let record = fs::read_to_string(record).ok()?;
    let first: serde_json::Value = serde_json::from_str(record.lines().next()?).ok()?;
    first["pid"].as_u64()
}

fn child_pid(record: &Path) -> Option<u64> {
    let record = fs::read_to_string(record).ok()?;
    let lines = record
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter_map(|line: serde_json::Value| line["child"].as_u64())
        .next()
}

/// The part of the harness: begins a turn in its own rig, tells where, and hangs.
async fn play_harness(dir: &Path) {
    let rig = Rig::new(Way::PerTurn);
    let record = rig.path("record.jsonl");
    fs::write(dir.join("where"), record.to_str().expect("a path")).expect("a note");
    let mut engine = rig.engine().await;
    let ready = dir.join("ready");
    let steps = format!(
        "ignore INT TERM\ninit\nchild\ntouch {}\nhang",
        ready.display()
    );
    let turn = engine.begin(rig.spec(&fake(&steps))).await.expect("a turn");
    turn.end().await;
}

#[tokio::test]
async fn a_harness_that_is_killed_takes_engine_and_tools_with_it() {
    if let Some(dir) = std::env::var_os(PLAY) {
        return play_harness(Path::new(&dir)).await;
    }
    let rig = Rig::new(Way::PerTurn);
    let test = "lifeline::a_harness_that_is_killed_takes_engine_and_tools_with_it";
    let mut harness = harness(&rig, test);
    touched(&rig.path("ready")).await;
    let record = fs::read_to_string(rig.path("where")).expect("a note");
    let record = Path::new(&record);
    let engine = engine_pid(record).expect("an engine");
    // Recorded after the file was touched or before: both are written by one process.
    until("a child", || child_pid(record).is_some()).await;
    let child = child_pid(record).expect("a child");
    assert!(is_running(engine) && is_running(child));
    harness.kill().expect("the harness is ours");
    harness.wait().expect("the harness is ours");
    until("both are gone", || {
        !is_running(engine) && !is_running(child)
    })
    .await;
    fs::remove_dir_all(record.parent().expect("a directory")).expect("the rig of the killed");
}

#[tokio::test]
async fn a_guard_that_is_killed_leaves_nothing_behind() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let ready = rig.path("ready");
        let steps = format!(
            "ignore INT TERM\ninit\nchild\ntouch {}\nhang",
            ready.display()
        );
        let turn = engine.begin(rig.spec(&fake(&steps))).await.expect("a turn");
        touched(&ready).await;
        let pid = rig.record()[0]["pid"].as_u64().expect("a pid");
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let (_, fields) = stat.rsplit_once(") ").expect("fields");
        let guard: i32 = fields
            .split(' ')
            .nth(1)
            .expect("a parent")
            .parse()
            .expect("a pid");
        kill_process(Pid::from_raw(guard).expect("a pid"), Signal::KILL).expect("it runs");
        turn.end().await;
        assert!(
            !is_running(pid) && !is_running(rig.child().expect("a child")),
            "{way:?}"
        );
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn what_an_earlier_harness_left_is_cleared_at_boot() {
    let rig = Rig::new(Way::PerTurn);
    let mut left = Command::new("sleep")
        .arg("600")
        .env("HIVE_ENGINE_TREE", rig.path("state"))
        .spawn()
        .expect("sleep");
    let mut other = Command::new("sleep")
        .arg("600")
        .env("HIVE_ENGINE_TREE", rig.path("other"))
        .spawn()
        .expect("sleep");
    let mut engine = rig.engine().await;
    run(&mut engine, rig.spec("hello")).await;
    assert!(!is_running(left.id().into()));
    assert!(
        is_running(other.id().into()),
        "another agent's is left alone"
    );
    other.kill().expect("ours");
    other.wait().expect("ours");
    left.wait().expect("ours");
    engine.shutdown().await;
}
