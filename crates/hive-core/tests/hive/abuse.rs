//! Hostile peers: whatever one of them does, the others are served and nothing is lost.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use hive_testkit::hive::TestHive;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{
    abuse_memory::{MIB, peak_memory},
    peer::{Doors, code, eventually, hive, hive_with, mail, ok},
};

/// Two others exchange a message: the hive works.
fn others_are_served(hive: &TestHive) {
    static TURNS: AtomicU32 = AtomicU32::new(0);
    let turn = format!("work-{}", TURNS.fetch_add(1, Ordering::Relaxed));
    let mut carl = hive.peer("carl");
    carl.park(&json!({"cmd":"recv","turn":turn}));
    hive.send("dora", "carl", "still here?");
    let got = carl.hear();
    assert_eq!(mail(&got), [("still here?", 1)]);
    let id = &got["messages"][0]["id"];
    let acked = ok(carl.ask(&json!({"cmd":"ack_turn","turn":"current","ids":[id]})));
    assert_eq!(acked["acked"], 1);
}

#[tokio::test]
async fn c2_a_gigabyte_without_a_newline_is_cut_off_early() {
    let hive = hive(&["ada", "carl", "dora"]).await;
    let before = peak_memory(&hive);
    let mut ada = hive.peer("ada");
    let chunk = vec![b'x'; MIB];
    let mut taken = 0;
    while taken < 1024 * MIB {
        match ada.stream().write(&chunk) {
            Ok(written) => taken += written,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
                break;
            }
        }
    }
    assert!(taken < 4 * MIB, "{taken} bytes were taken");
    assert_eq!(code(&ada.hear()), "line_too_long");
    assert!(ada.is_over());
    let grown = peak_memory(&hive) - before;
    assert!(grown < 8 * MIB, "{grown} bytes more");
    others_are_served(&hive);
}

#[tokio::test]
async fn c2_the_longest_line_is_taken_and_one_byte_more_is_not() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let request = "{\"cmd\":\"status\",\"padding\":\"\"}";
    let padding = |length: usize| request.replace("\"\"", &format!("\"{}\"", "x".repeat(length)));
    let fits = padding(MIB - request.len());
    assert_eq!(fits.len(), MIB);
    ada.say_raw(format!("{fits}\n").as_bytes());
    assert_eq!(ok(ada.hear())["unread"], 0);
    ada.say_raw(format!("{}\n", padding(MIB - request.len() + 1)).as_bytes());
    assert_eq!(code(&ada.hear()), "line_too_long");
    assert!(ada.is_over());
}

#[tokio::test]
async fn c2_a_line_that_trickles_in_is_cut_off_and_a_silent_peer_is_not() {
    let config = "[limits]\nline_seconds = 1\n";
    let hive = hive_with(config, &["ada", "carl", "dora"]).await;
    let mut silent = hive.peer("ada");
    let mut slow = hive.peer("ada");
    slow.stream()
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    // Every byte comes in time; the line as a whole does not.
    let mut reply = Vec::new();
    while !reply.ends_with(b"\n") {
        if let Err(error) = slow.stream().write(b" ") {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
        }
        let mut bytes = [0; 512];
        match slow.stream().read(&mut bytes) {
            Ok(read) => reply.extend_from_slice(&bytes[..read]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }
    assert_eq!(code(&serde_json::from_slice(&reply).unwrap()), "slow");
    assert!(slow.is_over());
    ok(silent.ask(&json!({"cmd":"status"})));
    others_are_served(&hive);
}

#[tokio::test]
async fn c2_heavy_ten_thousand_idle_connections() {
    const SEATS: usize = 1_000;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )
    .unwrap();
    let most = limit
        .maximum
        .map_or(10_000, |most| most.saturating_sub(200));
    let connections = usize::try_from(most.min(10_000)).unwrap();
    assert!(
        connections > SEATS,
        "this machine allows {connections} open files"
    );

    let config = format!("[limits]\nconnections_per_agent = {SEATS}\n");
    let hive = hive_with(&config, &["ada", "carl", "dora"]).await;
    let before = peak_memory(&hive);
    let path = hive.agent_socket("ada");
    let mut idle: Vec<UnixStream> = Vec::new();
    for number in 0..connections {
        idle.push(UnixStream::connect(&path).unwrap());
        if number % 2_000 == 0 {
            others_are_served(&hive);
        }
    }
    let mut refused = hive.peer("ada");
    assert_eq!(code(&refused.hear()), "limit_reached");
    assert!(refused.is_over());
    others_are_served(&hive);
    let grown = peak_memory(&hive) - before;
    assert!(
        grown < 24 * MIB,
        "{grown} bytes more for {connections} connections"
    );

    drop(idle);
    eventually("a seat is free again", || {
        let mut ada = hive.peer("ada");
        drop(ada.stream().write_all(b"{\"cmd\":\"status\"}\n"));
        ada.hear()["ok"] == true
    });
}

#[tokio::test]
async fn c2_heavy_a_storm_of_connections() {
    let hive = hive(&["ada", "carl", "dora"]).await;
    let path = hive.agent_socket("ada");
    for number in 0..5_000 {
        let mut stream = UnixStream::connect(&path).unwrap();
        match number % 4 {
            0 => drop(stream),
            // A peer without a seat may be gone before its words are.
            1 => drop(stream.write_all(b"{\"cmd\":\"status\"}\n")),
            2 => drop(stream.write_all(b"{\"cmd\":\"recv\",\"wait_seconds\":180}\n")),
            _ => drop(stream.write_all(b"half a li")),
        }
    }
    eventually("the storm is over", || {
        let mut ada = hive.peer("ada");
        drop(ada.stream().write_all(b"{\"cmd\":\"status\"}\n"));
        ada.hear()["ok"] == true
    });
    others_are_served(&hive);
}

#[tokio::test]
async fn t1_a_half_closed_peer_still_gets_its_reply() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    bob.park(&json!({"cmd":"recv"}));
    bob.half_close();
    hive.send("ada", "bob", "you asked");
    assert_eq!(mail(&bob.hear()), [("you asked", 1)]);
    assert!(bob.is_over());
}

#[tokio::test]
async fn m3_a_peer_that_hung_up_swallows_nothing() {
    let hive = hive(&["ada", "bob"]).await;
    for round in 0..40 {
        let mut bob = hive.peer("bob");
        bob.park(&json!({"cmd":"recv"}));
        if round % 3 == 0 {
            bob.half_close();
        }
        drop(bob);
        // At once: the daemon may not have looked at the connection again.
        hive.send("ada", "bob", "keep me");
        let got = hive.peer("bob").ask(&json!({"cmd":"recv"}));
        assert_eq!(mail(&got), [("keep me", 1)], "round {round}");
    }
}

#[tokio::test]
async fn m3_a_peer_that_hung_up_with_its_hands_full_swallows_nothing() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    // Everything waits for the first reply, and the daemon does not read from it any more.
    let lines = format!(
        "{}\n{}",
        json!({"cmd":"recv","wait_seconds":180}),
        "{\"cmd\":\"status\"}\n".repeat(60)
    );
    bob.say_raw(lines.as_bytes());
    eventually("it waits", || {
        let metrics = crate::http::metrics(&hive);
        let parked = |line: &str| line.contains("parked_receivers") && line.ends_with(" 1");
        metrics.lines().any(parked)
    });
    drop(bob);
    hive.send("ada", "bob", "keep me");
    let status = ok(hive.peer("bob").ask(&json!({"cmd":"status"})));
    assert_eq!(status["unread"], 1);
}

#[tokio::test]
async fn c2_a_connection_has_a_few_receives_under_way() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    for id in 0..4 {
        bob.say(&json!({"cmd":"recv","wait_seconds":180,"id":id}));
    }
    let refused = bob.ask(&json!({"cmd":"recv","wait_seconds":180,"id":4}));
    assert_eq!(
        (code(&refused), &refused["id"]),
        ("limit_reached", &json!(4))
    );
    hive.send("ada", "bob", "one");
    assert_eq!(bob.hear()["id"], 0);
    bob.park(&json!({"cmd":"recv"}));
}

#[tokio::test]
async fn c2_peers_that_hung_up_leave_nothing_open() {
    let hive = hive(&["bob"]).await;
    let open_files = || {
        let dir = format!("/proc/{}/fd", hive.pid().unwrap());
        fs::read_dir(dir).unwrap().count()
    };
    let before = open_files();
    for _ in 0..200 {
        hive.peer("bob").park(&json!({"cmd":"recv"}));
    }
    // Far sooner than what they waited for would have ended.
    eventually("their connections are closed", || {
        open_files() <= before + 1
    });
}

#[tokio::test]
async fn c2_a_peer_that_hung_up_gives_its_seat_back() {
    let hive = hive_with(
        "[limits]\nconnections_per_agent = 3\n",
        &["bob", "carl", "dora"],
    )
    .await;
    for _ in 0..3 {
        let mut bob = hive.peer("bob");
        bob.park(&json!({"cmd":"recv"}));
        // As socat does: it says that it has no more to say, and hangs up some time later.
        bob.half_close();
        others_are_served(&hive);
    }
    eventually("bob is let in", || {
        let mut bob = hive.peer("bob");
        drop(bob.stream().write_all(b"{\"cmd\":\"status\"}\n"));
        bob.hear()["ok"] == true
    });
}
