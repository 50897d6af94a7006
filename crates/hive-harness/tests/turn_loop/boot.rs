//! Starting: what stands in the way is said.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use hive_harness::serve;

use crate::rig::Rig;

async fn start(rig: &Rig) -> anyhow::Result<()> {
    let hive = Path::new(env!("CARGO_BIN_EXE_hive"));
    serve::run(&rig.environment(), hive, &rig.host, &rig.orders).await
}

#[tokio::test]
async fn t16_t17_an_engine_that_lacks_a_flag_is_an_error_at_boot() {
    let rig = Rig::new().with("HIVE_ENGINE_ENV_FAKE_ENGINE_LACKS", "--strict-mcp-config");
    rig.host.send("hello");
    let error = format!("{:#}", start(&rig).await.unwrap_err());
    assert!(error.contains("--strict-mcp-config"), "{error}");
    rig.host.look(|book| {
        assert!(book.calls.is_empty(), "no mail was taken");
        assert!(
            book.notes().contains("--strict-mcp-config"),
            "{}",
            book.notes()
        );
    });
}

#[tokio::test]
async fn t16_an_engine_that_is_not_there_is_named() {
    let rig = Rig::new().with("HIVE_ENGINE", "/no/such/engine");
    let error = format!("{:#}", start(&rig).await.unwrap_err());
    assert!(error.contains("/no/such/engine"), "{error}");
}

#[tokio::test]
async fn t16_a_harness_whose_engine_does_not_answer_can_be_stopped() {
    let rig = Rig::new();
    let (engine, asked) = (rig.path("deaf"), rig.path("asked"));
    let script = format!("#!/bin/sh\n: > {}\nexec sleep 600\n", asked.display());
    fs::write(&engine, script).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    let rig = rig.with("HIVE_ENGINE", engine.to_str().unwrap());
    let stopped = rig.play(async {
        while !asked.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let stopped = tokio::time::timeout(Duration::from_secs(30), stopped).await;
    assert!(stopped.is_ok(), "it waits for its engine");
}

#[tokio::test]
async fn t16_two_harnesses_do_not_share_a_directory() {
    let rig = Rig::new();
    rig.play(async {
        rig.host
            .wait("receive", |book| !book.turns.is_empty())
            .await;
        let error = format!("{:#}", start(&rig).await.unwrap_err());
        assert!(error.contains("another harness (process"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn m13_broken_extra_servers_end_the_start() {
    let rig = Rig::new();
    let extra = rig.path("extra.json");
    fs::write(&extra, "{").unwrap();
    let rig = rig.with("HIVE_EXTRA_MCP", extra.to_str().unwrap());
    let error = format!("{:#}", start(&rig).await.unwrap_err());
    assert!(error.contains("extra.json"), "{error}");
}

#[tokio::test]
async fn b5_a_missing_background_shell_is_noted_once_and_turns_run_without() {
    let rig = Rig::new();
    rig.play(async {
        rig.host.send("hello");
        rig.host.turns_ended(1).await;
    })
    .await;
    rig.host.look(|book| {
        assert_eq!(book.notes().matches("no background shell").count(), 1);
        assert_eq!(book.acks(), 1);
    });
}
