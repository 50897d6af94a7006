//! T17: an engine that cannot be used is an error at boot that says why.

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt};

use crate::rig::{Rig, Way};

fn set(rig: &mut Rig, name: &str, value: &str) {
    rig.command
        .env
        .push((OsString::from(name), OsString::from(value)));
}

#[tokio::test]
async fn t17_flags_are_learned_and_a_missing_one_is_named() {
    let mut rig = Rig::new(Way::PerTurn);
    let profile = rig.command.probe().await.expect("a usable engine");
    assert_eq!(profile.version, "2.1.325 (fake engine)");
    assert!(profile.can_linger());

    set(&mut rig, "FAKE_ENGINE_LACKS", "--mcp-config --tools");
    let error = rig
        .command
        .probe()
        .await
        .expect_err("it lacks flags")
        .to_string();
    for part in ["--mcp-config, --tools", "2.1.325", "fake-engine", "install"] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

#[tokio::test]
async fn t17_optional_flags_are_left_out_when_they_are_unknown() {
    let mut rig = Rig::new(Way::Warm);
    let lacks = "--system-prompt-snapshot --setting-sources --input-format";
    set(&mut rig, "FAKE_ENGINE_LACKS", lacks);
    let mut engine = rig.engine().await;
    let turn = engine.begin(rig.spec("hello")).await.expect("a turn");
    let ended = turn.end().await;
    assert!(ended.facts.result.is_some(), "{ended:?}");
    assert!(
        !engine.is_warm(),
        "an engine without JSON input runs once per turn"
    );
    engine.shutdown().await;
}

#[tokio::test]
async fn t17_programs_that_are_no_engine_are_told_apart() {
    let mut rig = Rig::new(Way::PerTurn);
    rig.command.program = "no-such-engine".into();
    let error = rig
        .command
        .probe()
        .await
        .expect_err("not there")
        .to_string();
    assert!(
        error.contains("cannot run the engine `no-such-engine`"),
        "{error}"
    );

    let script = rig.path("engine.sh");
    fs::write(&script, "#!/bin/sh\nexit 3\n").expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
    rig.command.program = script;
    let error = rig
        .command
        .probe()
        .await
        .expect_err("no engine")
        .to_string();
    assert!(error.contains("ended with exit status: 3"), "{error}");
}

#[tokio::test]
async fn a_missing_file_is_named_before_anything_runs() {
    let rig = Rig::new(Way::PerTurn);
    let mut engine = rig.engine().await;
    fs::remove_file(rig.path("system.md")).expect("the file");
    let error = engine
        .begin(rig.spec("hello"))
        .await
        .expect_err("no file")
        .to_string();
    assert!(error.contains("system.md"), "{error}");
    assert_eq!(rig.starts(), 0);
    engine.shutdown().await;
}
