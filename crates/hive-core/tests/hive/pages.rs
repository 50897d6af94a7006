//! Listings and replies fit into a line, however large what they list, and nothing is left out.

use serde_json::{Value, json};

use crate::peer::{Doors, code, hive, hive_with, ok};

/// The largest body but a little.
fn large(tag: &str) -> String {
    format!("{tag} {}", "x".repeat(250_000))
}

#[tokio::test]
async fn c1_an_inbox_of_megabytes_is_shown_whole() {
    let hive = hive(&["ada"]).await;
    let ids: Vec<i64> = (0..6)
        .map(|number| hive.send("ada", "operator", &large(&number.to_string())))
        .collect();
    let shown = hive.cli_json(&["inbox"]);
    let shown: Vec<&Value> = shown["messages"].as_array().unwrap().iter().collect();
    let same = shown
        .iter()
        .zip(&ids)
        .all(|(message, id)| message["id"].as_str() == Some(id.to_string().as_str()));
    assert!(shown.len() == ids.len() && same, "{} messages", shown.len());
    let mut before: Option<String> = None;
    let mut seen = 0;
    loop {
        let mut words = vec!["history", "--limit", "200"];
        words.extend(
            before
                .as_deref()
                .into_iter()
                .flat_map(|id| ["--before", id]),
        );
        let page = hive.cli_json(&words);
        seen += page["messages"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => before = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen, ids.len());
}

#[tokio::test]
async fn c18_every_dead_letter_is_shown() {
    let hive = hive_with("[limits]\ndeliveries_before_dead = 1\n", &["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    for number in 0..6 {
        hive.send("ada", "bob", &large(&number.to_string()));
        let turn = format!("t{number}");
        ok(bob.ask(&json!({"cmd":"recv","turn":turn})));
        ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":turn})));
    }
    let dead = hive.cli_json(&["dead"]);
    assert_eq!(dead["messages"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn m6_large_loose_ends_are_shown_short() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    for number in 0..20 {
        let remind =
            json!({"cmd":"remind","message":large(&number.to_string()),"delay_seconds":999});
        ok(ada.ask(&remind));
        ok(ada.ask(&json!({"cmd":"ask","question":"y".repeat(60_000)})));
    }
    let ends = ok(ada.ask(&json!({"cmd":"get_loose_ends"})));
    assert_eq!(ends["loose_ends"].as_array().unwrap().len(), 40);
    let listed = hive.cli_json(&["questions"]);
    assert!(!listed["questions"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn m16_transient_messages_are_bounded_also_while_a_turn_holds_them() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let wake = json!({"cmd":"wake","from":"flood","body":large("w"),"transient":true});
    let mut taken = 0;
    let refused = loop {
        let reply = ada.ask(&wake);
        if reply["ok"] != true {
            break reply;
        }
        ok(ada.ask(&json!({"cmd":"recv","turn":"t1"})));
        taken += 1;
        assert!(taken < 100, "a turn may hold any amount of memory");
    };
    assert_eq!(code(&refused), "limit_reached");
    ok(ada.ask(&json!({"cmd":"ack_turn","turn":"t1"})));
    assert_eq!(
        ada.ask(&wake)["ok"],
        true,
        "the turn ended, and its memory is free"
    );
}
