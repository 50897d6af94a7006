//! Peers that ask for much and read nothing: the daemon's memory stays bounded.

use std::{
    fs,
    io::{ErrorKind, Write},
    time::Duration,
};

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::peer::{Doors, Peer, hive, hive_with, mail, ok};

pub(crate) const MIB: usize = 1024 * 1024;

/// The most memory the daemon ever had, in bytes.
pub(crate) fn peak_memory(hive: &TestHive) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", hive.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: usize = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1024
}

/// Writes the same lines over and over until the daemon has taken none for a while, or `most` are
/// written; how many were.
fn flood(peer: &Peer, request: &Value, most: usize) -> usize {
    // Long enough for a daemon that reads at all.
    peer.stream()
        .set_write_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let line = format!("{request}\n");
    let lines = line.repeat(64);
    for written in (0..most).step_by(64) {
        if let Err(error) = peer.stream().write_all(lines.as_bytes()) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            return written;
        }
    }
    most
}

/// Somebody else's mail comes and goes.
fn others_are_served(hive: &TestHive) {
    hive.send("carl", "carl", "still here?");
    let got = hive.peer("carl").ask(&json!({"cmd":"recv"}));
    assert_eq!(mail(&got), [("still here?", 1)]);
}

#[tokio::test]
async fn c2_heavy_a_flood_of_requests_whose_replies_nobody_reads() {
    let hive = hive(&["ada", "carl"]).await;
    let before = peak_memory(&hive);
    let ada = hive.peer("ada");
    let request = json!({"cmd":"send","to":"nobody","body":""});
    let written = flood(&ada, &request, 100_000);
    assert!(written < 100_000, "nobody reads, and all were taken");
    let grown = peak_memory(&hive) - before;
    assert!(
        grown < 16 * MIB,
        "{grown} bytes more after {written} requests"
    );
    others_are_served(&hive);
}

#[tokio::test]
async fn c2_heavy_a_flood_behind_a_parked_receive() {
    let hive = hive(&["ada", "carl"]).await;
    let before = peak_memory(&hive);
    let mut ada = hive.peer("ada");
    // Without ids: every reply has to wait for the one of the receive.
    ada.say(&json!({"cmd":"recv","wait_seconds":180}));
    let written = flood(&ada, &json!({"cmd":"status"}), 100_000);
    assert!(
        written < 100_000,
        "all replies wait, and all requests were taken"
    );
    let grown = peak_memory(&hive) - before;
    assert!(
        grown < 16 * MIB,
        "{grown} bytes more after {written} requests"
    );
    others_are_served(&hive);

    hive.send("carl", "ada", "go on");
    assert_eq!(mail(&ada.hear()), [("go on", 1)]);
    for _ in 0..written {
        ok(ada.hear());
    }
}

#[tokio::test]
async fn c2_heavy_small_requests_with_large_replies_that_nobody_reads() {
    let hive = hive(&["ada", "carl"]).await;
    let mut ada = hive.peer("ada");
    for _ in 0..4 {
        ok(ada.ask(&json!({"cmd":"send","to":"ada","body":"x".repeat(200 * 1024)})));
    }
    let receive = json!({"cmd":"recv","turn":"t","req":"r","max":32});
    assert_eq!(mail(&ada.ask(&receive)).len(), 4);
    let before = peak_memory(&hive);
    // The same 800 KiB again and again, for sixty bytes each.
    let peers: Vec<Peer> = (0..8).map(|_| hive.peer("ada")).collect();
    for peer in &peers {
        flood(peer, &receive, 1_000);
        others_are_served(&hive);
    }
    let grown = peak_memory(&hive) - before;
    assert!(grown < 64 * MIB, "{grown} bytes more");
    others_are_served(&hive);
}

#[tokio::test]
async fn c2_heavy_large_requests_whose_replies_nobody_reads() {
    let hive = hive_with("[limits]\nsends_per_minute = 0\n", &["ada", "carl"]).await;
    let before = peak_memory(&hive);
    let request = json!({"cmd":"send","to":"nobody","body":"x".repeat(250 * 1024)});
    let line = format!("{request}\n").repeat(8);
    let mut peers: Vec<Peer> = (0..16).map(|_| hive.peer("ada")).collect();
    for peer in &mut peers {
        peer.say_raw(line.as_bytes());
    }
    for peer in &mut peers {
        for _ in 0..8 {
            assert_eq!(peer.hear()["error"]["code"], "not_found");
        }
    }
    let grown = peak_memory(&hive) - before;
    assert!(grown < 64 * MIB, "{grown} bytes more");
    others_are_served(&hive);
}
