//! `process`: what is special about plain processes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command as Program,
    time::Duration,
};

use hive_runtime::{
    Exit, RuntimeError, State,
    companion::Companion,
    conformance::{PATIENCE, Subject, Witness, await_end},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Kind, Place, WAITS, keeper};

crate::promises!(Kind::Process);

fn signal(pid: &Value, signal: Signal) {
    let pid = i32::try_from(pid.as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[test]
fn c13_a_killed_keeper_is_noticed_and_its_agent_is_cleared_away() {
    let place = Place::of(Kind::Process).unwrap();
    let runtime = place.runtime();
    let script = format!("setsid sleep 1000 & {WAITS}");
    let spec = place.agent("ada", &script);
    let witness = Witness::of(&spec);
    runtime.start(&spec).unwrap();
    witness.hears("ready");
    let watched = runtime.watch(&spec.name).unwrap().unwrap();
    signal(&place.record("ada")["keeper"]["pid"], Signal::KILL);
    await_end(watched);
    let again = runtime.start(&spec).unwrap();
    // Those of the first life are gone by now, so that what is said is said by the second.
    let witness = Witness::again(&spec);
    witness.hears("ready");
    assert_eq!(
        runtime.list().unwrap(),
        [again],
        "one, and the old one is gone"
    );
    runtime.stop(&spec.name, PATIENCE).unwrap();
    witness.is_alone();
}

#[test]
fn c13_a_stop_clears_away_after_a_killed_keeper() {
    let place = Place::of(Kind::Process).unwrap();
    let runtime = place.runtime();
    let spec = place.agent("ada", &format!("setsid sleep 1000 & {WAITS}"));
    let witness = Witness::of(&spec);
    runtime.start(&spec).unwrap();
    witness.hears("ready");
    signal(&place.record("ada")["keeper"]["pid"], Signal::KILL);
    runtime.stop(&spec.name, PATIENCE).unwrap();
    witness.is_alone();
    let ended = runtime.inspect(&spec.name).unwrap().unwrap();
    assert_eq!(ended.state, State::Ended(Exit::Unseen));
}

#[test]
fn c13_a_keeper_that_does_not_react_is_killed_with_its_agent() {
    let place = Place::of(Kind::Process).unwrap();
    let runtime = place.runtime();
    let spec = place.agent("ada", WAITS);
    let witness = Witness::of(&spec);
    runtime.start(&spec).unwrap();
    witness.hears("ready");
    signal(&place.record("ada")["keeper"]["pid"], Signal::STOP);
    runtime.stop(&spec.name, Duration::ZERO).unwrap();
    witness.is_alone();
}

#[test]
fn c13_a_process_id_that_was_used_again_is_left_alone() {
    let place = Place::of(Kind::Process).unwrap();
    let runtime = place.runtime();
    let spec = place.agent("ada", "exit 0");
    runtime.start(&spec).unwrap();
    runtime.stop(&spec.name, PATIENCE).unwrap();
    let mut stranger = Program::new("sleep").arg("1000").spawn().unwrap();
    let record = place.record("ada");
    let boot = record["boot"].as_str().unwrap();
    for (boot, start) in [(boot, 1), ("another-boot", 1)] {
        let mut forged = record.clone();
        forged["boot"] = boot.into();
        forged["exit"] = Value::Null;
        for process in ["keeper", "program"] {
            forged[process] = serde_json::json!({"pid": stranger.id(), "start": start});
        }
        fs::write(place.file("ada", "run.json"), forged.to_string()).unwrap();
        assert_eq!(runtime.list().unwrap(), []);
        let ended = runtime.inspect(&spec.name).unwrap().unwrap();
        assert_eq!(ended.state, State::Ended(Exit::Unseen));
        runtime.stop(&spec.name, Duration::ZERO).unwrap();
        assert_eq!(
            stranger.try_wait().unwrap(),
            None,
            "it has nothing to do with us"
        );
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn c13_a_damaged_record_is_an_error_and_never_a_second_agent() {
    let place = Place::of(Kind::Process).unwrap();
    let runtime = place.runtime();
    let spec = place.agent("ada", WAITS);
    fs::create_dir_all(place.file("ada", "")).unwrap();
    for damage in ["", "{", "{\"pid\":1}"] {
        fs::write(place.file("ada", "run.json"), damage).unwrap();
        let error = runtime.start(&spec).unwrap_err();
        assert!(matches!(error, RuntimeError::Io { .. }), "{error}");
        assert!(error.to_string().contains("runtime"), "{error}");
    }
}

#[test]
fn secrets_are_in_no_argument() {
    let place = Place::of(Kind::Process).unwrap();
    let runtime = place.runtime();
    let mut spec = place.agent("ada", WAITS);
    spec.env.insert("KEY".into(), "sk-very-secret".into());
    let witness = Witness::of(&spec);
    runtime.start(&spec).unwrap();
    witness.hears("ready");
    let record = place.record("ada");
    for process in ["keeper", "program"] {
        let proc = PathBuf::from(format!("/proc/{}", record[process]["pid"]));
        let read =
            |file: &str| String::from_utf8_lossy(&fs::read(proc.join(file)).unwrap()).into_owned();
        assert!(!read("cmdline").contains("sk-very-secret"));
        assert_eq!(
            read("environ").contains("sk-very-secret"),
            process == "program"
        );
    }
    for entry in fs::read_dir(place.file("ada", "")).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("sk-very-secret"), "{}", path.display());
        assert_private(&path);
    }
    runtime.stop(&spec.name, PATIENCE).unwrap();
}

fn assert_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
}

#[test]
fn a_companion_ends_with_whoever_started_it() {
    let place = Place::of(Kind::Process).unwrap();
    let spec = place.agent("demo", WAITS);
    let witness = Witness::of(&spec);
    let mut command = spec.command.clone();
    command.args[1] = format!("cd '{}'; {}", spec.dirs.state.display(), command.args[1]);
    let dir = place.path().join("companion");
    let start = || Companion::start(&keeper(), dir.clone(), command.clone(), spec.env.clone());
    let mut companion = start().unwrap();
    witness.hears("ready");
    assert!(!companion.has_ended().unwrap());
    assert!(start().is_err(), "there is one of it");
    drop(companion);
    witness.is_alone();
    let witness = Witness::again(&spec);
    let companion = start().unwrap();
    witness.hears("ready");
    drop(companion);
    witness.is_alone();
}
