//! How turns end: acked, given back, displaced; and what that means for what they held.

use serde_json::json;

use crate::peer::{Doors, code, hive, hive_with, mail, ok};

#[tokio::test]
async fn c3_an_ack_takes_what_was_listed_or_confirmed_and_gives_back_the_rest() {
    let hive = hive(&["ada", "bob"]).await;
    let ids: Vec<i64> = ["listed", "confirmed", "lost"]
        .map(|body| hive.send("ada", "bob", body))
        .to_vec();
    let mut bob = hive.peer("bob");
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1"})));
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1","req":"r1"})));
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1","req":"r2"})));
    for _ in 0..2 {
        let confirmed = bob.ask(&json!({"cmd":"confirm","turn":"t1","req":"r1"}));
        assert_eq!(ok(confirmed)["confirmed"], 1, "confirming is idempotent");
    }
    let nothing = bob.ask(&json!({"cmd":"confirm","turn":"t1","req":"other"}));
    assert_eq!(ok(nothing)["confirmed"], 0);

    // Ids of others' mail, of nothing and twice of the same change nothing.
    let ack = json!({"cmd":"ack_turn","turn":"t1","ids":[ids[0], ids[0], 4711, -3, 0]});
    let acked = ok(bob.ask(&ack));
    assert_eq!(
        acked,
        json!({"ok":true,"result":"acked","acked":2,"requeued":1})
    );
    let again = ok(hive.peer("bob").ask(&ack));
    assert_eq!(
        again,
        json!({"ok":true,"result":"already","acked":2,"requeued":1})
    );
    let other = ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"t1"})));
    assert_eq!(other["result"], "superseded", "it ended another way");
    let unknown = ok(bob.ask(&json!({"cmd":"ack_turn","turn":"never"})));
    assert_eq!(
        unknown,
        json!({"ok":true,"result":"unknown","acked":0,"requeued":0})
    );

    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t2","max":9}))),
        [("lost", 2)]
    );
}

#[tokio::test]
async fn c3_a_turn_belongs_to_its_agent_alone() {
    let hive = hive(&["ada", "bob"]).await;
    let id = hive.send("ada", "bob", "mine");
    ok(hive
        .peer("bob")
        .ask(&json!({"cmd":"recv","turn":"t1","req":"r"})));
    let mut ada = hive.peer("ada");
    let ack = ok(ada.ask(&json!({"cmd":"ack_turn","turn":"t1","ids":[id]})));
    assert_eq!(ack["result"], "unknown", "ada has no turn of that name");
    let confirm = ok(ada.ask(&json!({"cmd":"confirm","turn":"t1","req":"r"})));
    assert_eq!(confirm["confirmed"], 0);
    let requeue = ok(ada.ask(&json!({"cmd":"requeue_inflight","turn":"t1"})));
    assert_eq!(requeue["result"], "unknown");
    assert_eq!(
        ok(hive.peer("bob").ask(&json!({"cmd":"status"})))["inflight"],
        1
    );
}

#[tokio::test]
async fn c3_every_end_of_a_turn_ends_its_parked_receives() {
    let hive = hive(&["bob"]).await;
    let mut bob = hive.peer("bob");
    let ends = [
        json!({"cmd":"ack_turn","turn":"t0"}),
        json!({"cmd":"requeue_inflight","turn":"t1","reason":"interrupted"}),
        json!({"cmd":"recv","turn":"displacing"}),
    ];
    for (number, end) in ends.iter().enumerate() {
        let mut parked = [hive.peer("bob"), hive.peer("bob")];
        parked[0].park(&json!({"cmd":"recv","turn":format!("t{number}")}));
        parked[1].park(&json!({"cmd":"recv","turn":"current"}));
        ok(bob.ask(end));
        for peer in &mut parked {
            assert_eq!(code(&peer.hear()), "turn_ended", "{end}");
        }
        ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"displacing"})));
    }
}

#[tokio::test]
async fn c3_only_failures_count_towards_the_dead_letter() {
    let hive = hive_with("[limits]\ndeliveries_before_dead = 2\n", &["ada", "bob"]).await;
    let id = hive.send("ada", "bob", "poison");
    let mut bob = hive.peer("bob");
    let mut give_back = |delivery: u64, reason: &str| {
        let turn = format!("t{delivery}");
        let got = bob.ask(&json!({"cmd":"recv","turn":turn}));
        assert_eq!(mail(&got), [("poison", delivery)], "before {reason}");
        ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":turn,"reason":reason})))
    };
    let harmless = [
        "unavailable",
        "rate_limited",
        "auth",
        "interrupted",
        "shutdown",
    ];
    for (delivery, reason) in (1..).zip(harmless) {
        let back = give_back(delivery, reason);
        assert_eq!(
            back,
            json!({"ok":true,"result":"requeued","acked":0,"requeued":1})
        );
    }
    assert_eq!(give_back(6, "crash")["requeued"], 1);
    let dead = give_back(7, "failed");
    assert_eq!((&dead["requeued"], &dead["dead"]), (&json!(0), &json!(1)));
    let receipt = ok(hive
        .peer("ada")
        .ask(&json!({"cmd":"receipt","message_id":id})));
    assert_eq!(
        (&receipt["state"], &receipt["deliveries"]),
        (&json!("dead"), &json!(7))
    );
    let unknown = bob.ask(&json!({"cmd":"requeue_inflight","turn":"t","reason":"bored"}));
    assert_eq!(code(&unknown), "bad_request");
}

#[tokio::test]
async fn c3_a_turn_that_is_displaced_counts_as_a_failure() {
    let hive = hive_with("[limits]\ndeliveries_before_dead = 2\n", &["ada", "bob"]).await;
    let id = hive.send("ada", "bob", "poison");
    let mut bob = hive.peer("bob");
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t1"}))),
        [("poison", 1)]
    );
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t2"}))),
        [("poison", 2)]
    );
    assert_eq!(mail(&bob.ask(&json!({"cmd":"recv","turn":"t3"}))), []);
    let receipt = hive.cli_json(&["receipt", &id.to_string()]);
    assert_eq!(
        (&receipt["state"], &receipt["turn"]),
        (&json!("dead"), &json!("t2"))
    );
}

#[tokio::test]
async fn c18_a_dead_letter_is_redelivered_or_discarded() {
    let hive = hive_with("[limits]\ndeliveries_before_dead = 1\n", &["ada", "bob"]).await;
    let id = hive.send("ada", "bob", "poison").to_string();
    let mut bob = hive.peer("bob");
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1"})));
    let early = hive.cli(&["redeliver", &id]);
    assert_eq!(early.code, 6, "it is not dead yet: {}", early.stderr);
    assert_eq!(
        ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"t1"})))["dead"],
        1
    );

    let dead = hive.cli_json(&["dead"]);
    assert_eq!(dead["messages"][0]["id"], json!(id));
    assert_eq!(dead["messages"][0]["body"], "poison");
    let mut waiting = hive.peer("bob");
    waiting.park(&json!({"cmd":"recv","turn":"t2"}));
    assert_eq!(hive.cli_json(&["redeliver", &id])["state"], "stored");
    assert_eq!(
        mail(&waiting.hear()),
        [("poison", 2)],
        "redelivery wakes who waits"
    );
    assert_eq!(
        ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"t2"})))["dead"],
        1
    );

    assert_eq!(hive.cli(&["discard", &id]).code, 2, "it asks first");
    assert_eq!(
        hive.cli_json(&["discard", &id, "--yes"])["state"],
        "discarded"
    );
    assert_eq!(hive.cli_json(&["receipt", &id])["state"], "discarded");
    for (id, expected) in [(id.as_str(), 6), ("4711", 3)] {
        assert_eq!(hive.cli(&["discard", id, "--yes"]).code, expected, "{id}");
        assert_eq!(hive.cli(&["redeliver", id]).code, expected, "{id}");
    }
    assert_eq!(mail(&bob.ask(&json!({"cmd":"recv"}))), []);
    assert_eq!(hive.cli_json(&["dead"])["messages"], json!([]));
}

#[tokio::test]
async fn c3_what_is_given_back_keeps_its_place() {
    let hive = hive(&["ada", "bob"]).await;
    for body in ["a", "b", "c"] {
        hive.send("ada", "bob", body);
    }
    let mut bob = hive.peer("bob");
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1","max":2})));
    hive.send("ada", "bob", "d");
    ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"t1"})));
    let all = bob.ask(&json!({"cmd":"recv","turn":"t2","max":9}));
    assert_eq!(mail(&all), [("a", 2), ("b", 2), ("c", 1), ("d", 1)]);
}
