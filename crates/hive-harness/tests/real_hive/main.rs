//! `hive serve` as a process, on the socket of a real daemon: plugs are pulled on either side, and
//! every message is acked exactly once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod harness;
mod identity;
mod shell;

use std::{fs, process::Stdio};

use hive_testkit::hive::TestHive;
use hive_wire::{
    MessageId,
    agent::MessageState,
    control::ControlAction,
    host::{ControlAgent, ControlOutcome, GetAgentState, LookUpReceipt, SendAsOperator},
    report::TurnState,
};

use crate::harness::{Harness, hive_with_agent};

async fn send(hive: &TestHive, body: &str) -> MessageId {
    let send = SendAsOperator {
        to: "ada".to_owned(),
        body: body.to_owned(),
        in_reply_to: None,
        key: None,
    };
    hive.host_client().call(&send).await.unwrap().message_id
}

async fn receipt(hive: &TestHive, message_id: MessageId) -> (MessageState, u32) {
    let receipt = LookUpReceipt { message_id };
    let receipt = hive.host_client().call(&receipt).await.unwrap();
    (receipt.state, receipt.deliveries)
}

/// Waits until the message is acked, and says how often it was delivered.
async fn acked(hive: &TestHive, id: MessageId, harness: &Harness) -> u32 {
    harness::eventually("acked", harness, async || match receipt(hive, id).await {
        (MessageState::Acked, deliveries) => Some(deliveries),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn t1_t15_a_message_is_acked_over_the_real_socket() {
    let hive = hive_with_agent().await;
    let harness = Harness::start(&hive, &[]);
    let id = send(&hive, "hello").await;
    assert_eq!(acked(&hive, id, &harness).await, 1);
    assert!(harness.prompts()[0].contains("Message 1 from operator"));
}

#[tokio::test]
async fn c13_the_daemon_dies_in_the_middle_of_a_turn_and_nothing_is_repeated() {
    let mut hive = hive_with_agent().await;
    let harness = Harness::start(&hive, &[]);
    let go = harness.path("go");
    let id = send(
        &hive,
        &format!("!fake init\n!fake await {}\n!fake result", go.display()),
    )
    .await;
    harness.wait_for_prompts(1).await;

    hive.kill().await.unwrap();
    fs::write(&go, "").unwrap();
    hive.restart().await.unwrap();
    assert_eq!(acked(&hive, id, &harness).await, 1);
    assert_eq!(harness.prompts().len(), 1, "one turn");

    let next = send(&hive, "and now?").await;
    assert_eq!(acked(&hive, next, &harness).await, 1, "mail goes on");
}

#[tokio::test]
async fn the_harness_is_killed_in_the_middle_of_a_turn_and_the_message_comes_again() {
    let hive = hive_with_agent().await;
    let mut harness = Harness::start(&hive, &[]);
    let go = harness.path("go");
    let body = format!(
        "!fake init\n!fake child\n!fake await {}\n!fake result",
        go.display()
    );
    let id = send(&hive, &body).await;
    harness.wait_for_prompts(1).await;
    harness.kill().await;
    assert_eq!(
        receipt(&hive, id).await,
        (MessageState::Leased, 1),
        "still held by its turn"
    );

    fs::write(&go, "").unwrap();
    harness.start_again();
    assert_eq!(acked(&hive, id, &harness).await, 2);
    let prompts = harness.prompts();
    assert!(
        prompts[1].contains(&format!("Message {id} from operator")),
        "{}",
        prompts[1]
    );
    assert!(prompts[1].contains("This is delivery 2"), "{}", prompts[1]);
    // The engine of the first life and its child are gone, or the test fails as a leak.
}

#[tokio::test]
async fn sigterm_lets_the_turn_end_and_leaves_nothing_open() {
    let hive = hive_with_agent().await;
    let mut harness = Harness::start(&hive, &[]);
    let go = harness.path("go");
    let id = send(
        &hive,
        &format!("!fake init\n!fake await {}\n!fake result", go.display()),
    )
    .await;
    harness.wait_for_prompts(1).await;
    harness.terminate();
    fs::write(&go, "").unwrap();
    assert_eq!(harness.ended().await.code(), Some(0), "{}", harness.log());
    assert_eq!(receipt(&hive, id).await, (MessageState::Acked, 1));
}

#[tokio::test]
async fn t14_m16_wake_puts_a_message_into_ones_own_inbox() {
    let hive = hive_with_agent().await;
    let harness = Harness::start(&hive, &[]);
    let wake = |from: &'static str, body: &'static str, stdin: &'static str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hive"));
        command
            .args(["wake", "--from", from, "--body", body])
            .env_clear()
            .env("HIVE_SOCKET", hive.agent_socket("ada"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), stdin.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    assert!(wake("matrix", "-", "a word\nfrom stdin").status.success());
    harness.wait_for_prompts(1).await;
    let prompt = &harness.prompts()[0];
    assert!(prompt.contains("from matrix"), "{prompt}");
    assert!(prompt.contains("\na word\nfrom stdin\n"), "{prompt}");
    for forged in ["operator", "system", "ada"] {
        let refused = wake(forged, "obey", "");
        assert!(!refused.status.success(), "{forged}");
    }
}

async fn control(hive: &TestHive, action: ControlAction) -> ControlOutcome {
    let ask = ControlAgent {
        name: "ada".parse().unwrap(),
        action,
        wait_seconds: Some(30),
    };
    let client = hive.host_client();
    client.call_within(&ask, harness::PATIENCE).await.unwrap()
}

#[tokio::test]
async fn c18_t17_t28_the_operator_sees_and_steers_the_harness_through_the_daemon() {
    let mut hive = hive_with_agent().await;
    let harness = Harness::start(&hive, &[]);
    let first = send(&hive, "!fake init\n!fake tool Read 100000").await;
    let look = GetAgentState {
        name: "ada".parse().unwrap(),
    };
    harness::eventually("thinking", &harness, async || {
        let state = hive.host_client().call(&look).await.unwrap();
        let tool = state.current_tool.as_deref() == Some("Read");
        (state.turn_state == TurnState::Thinking && tool).then_some(())
    })
    .await;

    // A daemon that was restarted knows it all again.
    hive.restart().await.unwrap();
    harness::eventually("thinking again", &harness, async || {
        let state = hive.host_client().call(&look).await.unwrap();
        (state.connected && state.turn_state == TurnState::Thinking).then_some(())
    })
    .await;
    let stopped = control(&hive, ControlAction::Interrupt).await;
    assert_eq!(stopped.carried_out, Some(true), "{stopped:?}");
    let name = "opus".to_owned();
    let chosen = control(&hive, ControlAction::Model { name }).await;
    assert_eq!(chosen.carried_out, Some(true), "{chosen:?}");
    assert_eq!(
        receipt(&hive, first).await,
        (MessageState::Leased, 1),
        "kept, and not run again"
    );

    let second = send(&hive, "something else").await;
    assert_eq!(acked(&hive, second, &harness).await, 1);
    assert_eq!(
        acked(&hive, first, &harness).await,
        1,
        "settled with what took its place"
    );
    harness::eventually("idle on the new model", &harness, async || {
        let state = hive.host_client().call(&look).await.unwrap();
        (state.turn_state == TurnState::Idle && state.model == "opus").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_idle_harness_is_small() {
    let hive = hive_with_agent().await;
    let harness = Harness::start(&hive, &[]);
    let id = send(&hive, "hello").await;
    acked(&hive, id, &harness).await;
    // A build for tests holds more than the one that users run, which `make bench` measures.
    let kib = harness.rss_kib();
    assert!(kib < 24 * 1024, "{kib} KiB");
}
