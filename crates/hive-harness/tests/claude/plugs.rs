//! The plug pulled at any place: engine, harness, host, and streams that freeze.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use hive_testkit::{claude, waiting::until};
use hive_wire::{agent::MessageState, control::ControlAction};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Stage, processes_of};

/// A model whose first answer never ends.
const FREEZES: &str = "[[rule]]\ntimes = 1\nfault.kind = 'stall'\n[[rule]]\nanswer.text = 'ok'";

/// The engine of a harness: the process whose command line is that of `claude --print`.
fn engine(state: &Path) -> u32 {
    let engines = processes_of(state).into_iter().filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words[0].ends_with(b"/claude") && words.contains(&&b"--print"[..])
    });
    let engines: Vec<_> = engines.collect();
    assert_eq!(engines.len(), 1, "one engine: {engines:?}");
    engines[0]
}

/// Waits until no process of a harness is left.
async fn gone(state: &Path) {
    until("nothing runs", || processes_of(state).is_empty()).await;
}

async fn mid_turn(stage: &mut Stage) -> hive_wire::MessageId {
    let id = stage.send("take your time").await;
    stage.model.wait_for_requests(1).await.unwrap();
    id
}

#[tokio::test]
async fn a_killed_engine_gives_its_message_back() {
    let Some(mut stage) = Stage::new(FREEZES).await else {
        return;
    };
    let id = mid_turn(&mut stage).await;
    let pid = engine(stage.hive.root());
    kill_process(
        Pid::from_raw(pid.try_into().unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    assert_eq!(stage.acked(id).await.deliveries, 2);
    stage.turns_ended(2).await;
    assert!(!stage.of("turn_end")[0]["ok"].as_bool().unwrap());
    let again = &stage.of("turn_start")[1];
    assert_eq!(
        (&again["message_ids"][0], &again["delivery"]),
        (&serde_json::to_value(id).unwrap(), &2.into())
    );
    let told = &stage.model.requests()[1].last_user;
    assert!(
        told.contains("again") || told.contains("repeat") || told.contains("delivery"),
        "{told}"
    );
}

#[tokio::test]
async fn a_killed_harness_leaves_nothing_and_its_message_comes_again() {
    let Some(mut stage) = Stage::new(FREEZES).await else {
        return;
    };
    let id = mid_turn(&mut stage).await;
    let state = stage.path("state");
    assert!(!processes_of(&state).is_empty());
    stage.kill_harness().await;
    gone(&state).await;
    assert_eq!(
        stage.receipt(id).await.state,
        MessageState::Leased,
        "nobody acked it"
    );
    stage.start();
    assert_eq!(stage.acked(id).await.deliveries, 2);
}

#[tokio::test]
async fn a_killed_host_is_survived_in_the_middle_of_a_turn() {
    let scenario = "[[rule]]\nanswer = { text = 'ok', delay_ms = 1500 }";
    let Some(mut stage) = Stage::new(scenario).await else {
        return;
    };
    let id = mid_turn(&mut stage).await;
    stage.hive.restart().await.unwrap();
    assert_eq!(
        stage.acked(id).await.deliveries,
        1,
        "the turn ended across the restart"
    );
    stage.turns_ended(1).await;
    assert_eq!(stage.outcomes(), ["ok"]);
}

#[tokio::test]
async fn a_frozen_stream_is_ended_by_the_silence_timer() {
    let Some(stage) = Stage::set(FREEZES).await else {
        return;
    };
    let mut stage = stage.with("HIVE_ENGINE_SILENCE_SECS", "5");
    stage.start();
    let id = stage.send("hello?").await;
    assert_eq!(stage.acked(id).await.deliveries, 2);
    stage.turns_ended(2).await;
    assert!(
        !stage.of("turn_end")[0]["ok"].as_bool().unwrap(),
        "{}",
        stage.story()
    );
}

/// `claude` leaves after its result, so a wrapper stays in its place.
#[tokio::test]
async fn a_process_that_never_exits_is_ended_and_its_result_counts() {
    let Some(stage) = Stage::set("[[rule]]\nanswer.text = 'ok'").await else {
        return;
    };
    let lingering = stage.path("lingering");
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\" || exit\ncase $* in *--print*) exec sleep 100000 ;; esac\n",
        claude::claude().unwrap().display()
    );
    fs::write(&lingering, script).unwrap();
    fs::set_permissions(&lingering, fs::Permissions::from_mode(0o755)).unwrap();
    let mut stage = stage
        .with("HIVE_ENGINE", lingering.to_str().unwrap())
        .with("HIVE_ENGINE_EXIT_SECS", "1");
    stage.start();
    for _ in 0..2 {
        let id = stage.send("hello").await;
        assert_eq!(stage.acked(id).await.deliveries, 1);
    }
    stage.turns_ended(2).await;
    assert_eq!(stage.outcomes(), ["ok", "ok"]);
    stage.signal(Signal::TERM);
    assert_eq!(stage.ended().await, Some(0));
    gone(&stage.path("state")).await;
}

#[tokio::test]
async fn an_interrupt_stops_the_turn_and_the_agent_goes_on() {
    let Some(mut stage) = Stage::new(FREEZES).await else {
        return;
    };
    mid_turn(&mut stage).await;
    let outcome = stage.control(ControlAction::Interrupt).await;
    assert_eq!(outcome.carried_out, Some(true), "{outcome:?}");
    stage
        .event("turn_end", |data| data["outcome"] == "interrupted")
        .await;
    let id = stage.send("never mind, this instead").await;
    stage.acked(id).await;
}

#[tokio::test]
async fn a_harness_that_is_told_to_stop_gives_its_turn_back() {
    let Some(stage) = Stage::set(FREEZES).await else {
        return;
    };
    let mut stage = stage.with("HIVE_STOP_GRACE_SECS", "1");
    stage.start();
    let id = mid_turn(&mut stage).await;
    stage.signal(Signal::TERM);
    assert_eq!(stage.ended().await, Some(0));
    assert_eq!(stage.receipt(id).await.state, MessageState::Stored);
    assert_eq!(
        processes_of(&stage.path("state")),
        [0; 0],
        "nothing runs on"
    );
    stage.start();
    stage.acked(id).await;
}
