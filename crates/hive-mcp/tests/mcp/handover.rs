//! What `recv` takes: it belongs to the turn, and counts as handed over once it was written.

use hive_mcp::options::Purpose;
use hive_testkit::hive::TestHive;
use hive_wire::{
    MessageId, TurnId,
    agent::{AckTurn, InboxStatus, Recv, Send, Status, TurnClosed},
};
use serde_json::json;

use crate::client::{Mcp, PATIENCE, hive, options, wire};

async fn send(hive: &TestHive, body: &str) -> MessageId {
    let send = Send {
        to: "ada".to_owned(),
        body: body.to_owned(),
        in_reply_to: None,
        key: None,
    };
    wire(hive, "bob", send).await.message_id
}

/// Opens a turn of `ada` with one message, as its harness does.
async fn open_turn(hive: &TestHive, turn: &str) -> MessageId {
    let id = send(hive, "wake up").await;
    let recv = Recv {
        max: 1,
        turn: Some(turn.parse().unwrap()),
        ..Recv::default()
    };
    let got = wire(hive, "ada", recv).await;
    assert_eq!(got.messages[0].id, id);
    id
}

async fn ack(hive: &TestHive, turn: &str, ids: Vec<MessageId>) -> TurnClosed {
    let turn: TurnId = turn.parse().unwrap();
    wire(hive, "ada", AckTurn { turn, ids }).await
}

async fn status(hive: &TestHive) -> InboxStatus {
    wire(hive, "ada", Status {}).await
}

/// Waits until the open turn of `ada` holds this many messages.
async fn held(hive: &TestHive, inflight: u32) {
    let reached = async {
        while status(hive).await.inflight != inflight {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();
}

#[tokio::test]
async fn m3_a_batch_that_was_written_is_acked_with_its_turn() {
    let hive = hive().await;
    let first = open_turn(&hive, "t1").await;
    let second = send(&hive, "two").await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let got = mcp.ok("recv", json!({"max": 5})).await;
    assert_eq!(got["messages"][0]["message_id"], second.0);
    assert_eq!(got["messages"][0]["from"], "bob");
    assert_eq!(got["messages"][0]["body"], "two");
    assert_eq!(got["messages"][0]["delivery"], 1);
    assert_eq!(status(&hive).await.inflight, 2);
    // The server ends only after it has said that the batch was handed over.
    mcp.leave().await;
    let closed = ack(&hive, "t1", vec![first]).await;
    assert_eq!((closed.acked, closed.requeued), (2, 0));
}

#[tokio::test]
async fn m3_a_batch_that_was_not_written_comes_again() {
    let hive = hive().await;
    let first = open_turn(&hive, "t1").await;
    // More than a socket's buffer holds, so that the write is stuck half-way while nobody reads.
    for _ in 0..16 {
        send(&hive, &"x".repeat(40_000)).await;
    }
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let params = json!({"name": "recv", "arguments": {"max": 16}});
    mcp.request("tools/call", params).await;
    // The first bytes are there, so whatever was to be said before the write has been said.
    mcp.something_is_written().await;
    held(&hive, 17).await;
    let closed = ack(&hive, "t1", vec![first]).await;
    assert_eq!((closed.acked, closed.requeued), (1, 16));
    assert_eq!(status(&hive).await.unread, 16);
}

#[tokio::test]
async fn a_cancelled_receive_leaves_nothing_behind() {
    let hive = hive().await;
    let first = open_turn(&hive, "t1").await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    for _ in 0..10 {
        let params = json!({"name": "recv", "arguments": {"wait_seconds": 180}});
        let id = mcp.request("tools/call", params).await;
        let gone = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        mcp.say(&gone).await;
    }
    // None of the ten is answered, and none of them takes what the eleventh is for.
    let mail = send(&hive, "two").await;
    let got = mcp.ok("recv", json!({"wait_seconds": 180})).await;
    assert_eq!(got["messages"][0]["message_id"], mail.0, "{got}");
    mcp.leave().await;
    let closed = ack(&hive, "t1", vec![first]).await;
    assert_eq!((closed.acked, closed.requeued), (2, 0));
}

#[tokio::test]
async fn a_parked_receive_is_woken_and_ends_with_its_turn() {
    let hive = hive().await;
    let first = open_turn(&hive, "t1").await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let params = json!({"name": "recv", "arguments": {"wait_seconds": 180}});
    mcp.request("tools/call", params.clone()).await;
    let mail = send(&hive, "two").await;
    let answer = mcp.hear().await;
    let got = &answer["result"]["structuredContent"]["messages"][0];
    assert_eq!(got["message_id"], mail.0, "{answer}");

    // Another call is answered while this one is parked, which shows that it has arrived.
    mcp.request("tools/call", params).await;
    mcp.ok("set_status", json!({"text": "waiting"})).await;
    let ended = ack(&hive, "t1", vec![first]);
    let (_, answer) = tokio::join!(ended, mcp.hear());
    let said = &answer["result"]["content"][0]["text"];
    assert!(said.as_str().unwrap().contains("end this turn"), "{answer}");
}

#[tokio::test]
async fn outside_of_a_turn_what_is_received_is_acked_at_once() {
    let hive = hive().await;
    let mail = send(&hive, "by hand").await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let got = mcp.ok("recv", json!({})).await;
    assert_eq!(got["messages"][0]["message_id"], mail.0);
    let receipt = mcp.ok("get_receipt", json!({"message_id": mail.0})).await;
    assert_eq!(receipt["state"], "acked");
    assert_eq!(mcp.ok("recv", json!({})).await["messages"], json!([]));
}

#[tokio::test]
async fn t21_a_turn_for_notes_takes_no_mail() {
    let hive = hive().await;
    send(&hive, "later").await;
    let options = hive_mcp::Options {
        purpose: Purpose::Upkeep,
        ..options(&hive)
    };
    let mut mcp = Mcp::shaken(&options, "2025-11-25").await;
    let said = mcp.failure("recv", json!({})).await;
    assert!(said.contains("notes"), "{said}");
    assert_eq!(status(&hive).await.unread, 1);
}

#[tokio::test]
async fn a_long_body_goes_to_a_file_that_the_agent_can_read() {
    let hive = hive().await;
    open_turn(&hive, "t1").await;
    let long = "ü".repeat(60_000);
    send(&hive, &long).await;
    let options = options(&hive);
    let mut mcp = Mcp::shaken(&options, "2025-11-25").await;
    let got = mcp.ok("recv", json!({})).await;
    let message = &got["messages"][0];
    let file = message["body_file"].as_str().unwrap();
    assert!(
        file.starts_with(options.state_dir.unwrap().to_str().unwrap()),
        "{file}"
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), long);
    assert!(message["body"].as_str().unwrap().len() < 5_000);
}

#[tokio::test]
async fn a_send_survives_a_restart_of_the_daemon() {
    let mut hive = hive().await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    mcp.ok("send", json!({"to": "bob", "body": "one"})).await;
    hive.kill().await.unwrap();
    let params = json!({"name": "send", "arguments": {"to": "bob", "body": "two"}});
    mcp.request("tools/call", params).await;
    hive.restart().await.unwrap();
    let answer = mcp.hear().await;
    assert!(
        answer["result"]["structuredContent"]["message_id"].is_i64(),
        "{answer}"
    );
    let bob = wire(&hive, "bob", Status {}).await;
    assert_eq!(bob.unread, 2);
}
