//! Turns over the wire: who holds what, from the first receive to the ack.

use serde_json::json;

use crate::peer::{Doors, code, hive, mail, ok};

#[tokio::test]
async fn c3_m2_m3_send_receive_and_ack_by_hand() {
    let hive = hive(&["ada", "bob"]).await;
    let (mut ada, mut bob) = (hive.peer("ada"), hive.peer("bob"));
    let sent = ok(ada.ask(&json!({"cmd":"send","to":"bob","body":"hello\nbob 🐝"})));
    let id = sent["message_id"].clone();

    let got = ok(bob.ask(&json!({"cmd":"recv","turn":"t1"})));
    let message = &got["messages"][0];
    assert_eq!(message["id"], id);
    assert_eq!(message["from"], "ada");
    assert_eq!(message["to"], "bob");
    assert_eq!(message["body"], "hello\nbob 🐝");
    assert_eq!(message["in_reply_to"], json!(null));
    assert_eq!(message["delivery"], 1);
    let status = ok(bob.ask(&json!({"cmd":"status"})));
    assert_eq!(
        status,
        json!({"ok":true,"unread":0,"inflight":1,"turn":"t1"})
    );
    let receipt = ok(ada.ask(&json!({"cmd":"receipt","message_id":id})));
    assert_eq!(receipt["state"], "leased");
    assert_eq!(receipt["turn"], "t1");

    let acked = ok(bob.ask(&json!({"cmd":"ack_turn","turn":"t1","ids":[id]})));
    assert_eq!(
        acked,
        json!({"ok":true,"result":"acked","acked":1,"requeued":0})
    );
    let receipt = ok(ada.ask(&json!({"cmd":"receipt","message_id":id})));
    assert_eq!(receipt["state"], "acked");
    assert_eq!(receipt["deliveries"], 1);
    assert_eq!(mail(&bob.ask(&json!({"cmd":"recv","turn":"t2"}))), []);
}

#[tokio::test]
async fn t1_a_parked_receive_gets_the_message_that_comes() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    bob.park(&json!({"cmd":"recv","turn":"t1"}));
    let id = hive.send("ada", "bob", "wake up");

    // Nobody asks again, and the wait is far longer than the peer's patience.
    let got = bob.hear();
    assert_eq!(got["id"], 1);
    assert_eq!(mail(&got), [("wake up", 1)]);
    let receipt = hive
        .operator()
        .ask(&json!({"cmd":"receipt","message_id":id}));
    assert_eq!(ok(receipt)["state"], "leased", "leased in the same commit");
}

#[tokio::test]
async fn t1_those_who_wait_are_served_in_the_order_they_came() {
    let hive = hive(&["ada", "bob"]).await;
    let mut waiting: Vec<_> = (0..3).map(|_| hive.peer("bob")).collect();
    for peer in &mut waiting {
        peer.park(&json!({"cmd":"recv"}));
    }
    for body in ["first", "second", "third"] {
        hive.send("ada", "bob", body);
    }
    for (peer, body) in waiting.iter_mut().zip(["first", "second", "third"]) {
        assert_eq!(mail(&peer.hear()), [(body, 1)]);
    }
}

#[tokio::test]
async fn m3_without_a_turn_a_receive_acks() {
    let hive = hive(&["ada", "bob"]).await;
    let id = hive.send("ada", "bob", "once");
    assert_eq!(
        mail(&hive.peer("bob").ask(&json!({"cmd":"recv"}))),
        [("once", 1)]
    );
    let receipt = ok(hive
        .peer("bob")
        .ask(&json!({"cmd":"receipt","message_id":id})));
    assert_eq!(receipt["state"], "acked");
    assert_eq!(receipt["turn"], json!(null));
    assert_eq!(mail(&hive.peer("bob").ask(&json!({"cmd":"recv"}))), []);
}

#[tokio::test]
async fn m3_one_message_unless_told_and_at_most_32() {
    let hive = hive(&["ada", "bob"]).await;
    let mut ada = hive.peer("ada");
    for number in 0..40 {
        ok(ada.ask(&json!({"cmd":"send","to":"bob","body":number.to_string()})));
    }
    let mut bob = hive.peer("bob");
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t"}))),
        [("0", 1)]
    );
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t","max":0}))),
        [("1", 1)]
    );
    let many = bob.ask(&json!({"cmd":"recv","turn":"t","max":4_000_000_000_u32}));
    let bodies: Vec<String> = (2..34).map(|number| number.to_string()).collect();
    let got: Vec<_> = mail(&many).into_iter().map(|(body, _)| body).collect();
    assert_eq!(got, bodies);
    let status = ok(bob.ask(&json!({"cmd":"status"})));
    assert_eq!(
        (&status["unread"], &status["inflight"]),
        (&json!(6), &json!(34))
    );
}

#[tokio::test]
async fn m3_a_batch_of_large_bodies_fits_into_a_line_oldest_first() {
    const MESSAGES: usize = 12;
    let hive = hive(&["ada", "bob"]).await;
    let mut ada = hive.peer("ada");
    for number in 0..MESSAGES {
        // Newlines take two bytes on the wire: the budget is that of the encoded bodies.
        let body = format!("{number:02}{}", "\n".repeat(100 * 1024));
        ok(ada.ask(&json!({"cmd":"send","to":"bob","body":body})));
    }
    let mut bob = hive.peer("bob");
    let mut got = Vec::new();
    while got.len() < MESSAGES {
        let batch = bob.ask(&json!({"cmd":"recv","turn":"t","max":32}));
        let batch: Vec<_> = mail(&batch)
            .iter()
            .map(|(body, _)| body[..2].to_owned())
            .collect();
        assert!((2..=5).contains(&batch.len()), "{batch:?}");
        got.extend(batch);
    }
    let all: Vec<_> = (0..MESSAGES).map(|number| format!("{number:02}")).collect();
    assert_eq!(got, all);
}

#[tokio::test]
async fn c3_the_same_turn_joins_and_current_stands_for_it() {
    let hive = hive(&["ada", "bob"]).await;
    for body in ["a", "b", "c"] {
        hive.send("ada", "bob", body);
    }
    let mut bob = hive.peer("bob");
    for command in ["recv", "ack_turn", "requeue_inflight"] {
        let early = bob.ask(&json!({"cmd":command,"turn":"current"}));
        assert_eq!(code(&early), "no_open_turn", "{command}");
    }
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t1"}))),
        [("a", 1)]
    );
    let joined = hive.peer("bob").ask(&json!({"cmd":"recv","turn":"t1"}));
    assert_eq!(mail(&joined), [("b", 1)]);
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"current"}))),
        [("c", 1)]
    );
    assert_eq!(ok(bob.ask(&json!({"cmd":"status"})))["inflight"], 3);
    let ended = ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"current"})));
    assert_eq!(
        (&ended["result"], &ended["requeued"]),
        (&json!("requeued"), &json!(3))
    );
}

#[tokio::test]
async fn c3_a_new_turn_takes_over_what_the_open_one_holds() {
    let hive = hive(&["ada", "bob"]).await;
    for body in ["a", "b"] {
        hive.send("ada", "bob", body);
    }
    let mut bob = hive.peer("bob");
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1","max":2})));
    let over = bob.ask(&json!({"cmd":"recv","turn":"t2","max":2}));
    assert_eq!(mail(&over), [("a", 2), ("b", 2)]);

    let late = ok(bob.ask(&json!({"cmd":"ack_turn","turn":"t1","ids":[1,2]})));
    assert_eq!(
        late,
        json!({"ok":true,"result":"superseded","acked":0,"requeued":2})
    );
    let again = bob.ask(&json!({"cmd":"recv","turn":"t1"}));
    assert_eq!(code(&again), "turn_ended", "a turn is not opened twice");
    assert_eq!(ok(bob.ask(&json!({"cmd":"status"})))["turn"], "t2");
}

#[tokio::test]
async fn t1_what_a_displaced_turn_held_reaches_others_who_wait() {
    let hive = hive(&["ada", "bob"]).await;
    for body in ["a", "b", "c"] {
        hive.send("ada", "bob", body);
    }
    let (mut bob, mut waiting) = (hive.peer("bob"), hive.peer("bob"));
    ok(bob.ask(&json!({"cmd":"recv","turn":"t1","max":3})));
    waiting.park(&json!({"cmd":"recv","max":2}));
    // The new turn takes one of the three; the other two are in the inbox, where somebody waits.
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t2"}))),
        [("a", 2)]
    );
    assert_eq!(mail(&waiting.hear()), [("b", 2), ("c", 2)]);
}

#[tokio::test]
async fn c3_the_same_req_brings_the_same_batch() {
    let hive = hive(&["ada", "bob"]).await;
    for body in ["a", "b", "c"] {
        hive.send("ada", "bob", body);
    }
    let mut bob = hive.peer("bob");
    let receive = json!({"cmd":"recv","turn":"t1","req":"r1","max":2});
    let first = bob.ask(&receive);
    assert_eq!(mail(&first), [("a", 1), ("b", 1)]);
    // As if the reply had been lost: on another connection, and with another maximum.
    let again = json!({"cmd":"recv","turn":"t1","req":"r1","max":32,"wait_seconds":9});
    assert_eq!(hive.peer("bob").ask(&again), first);
    let next = bob.ask(&json!({"cmd":"recv","turn":"t1","req":"r2"}));
    assert_eq!(mail(&next), [("c", 1)]);
    let end = ok(bob.ask(&json!({"cmd":"requeue_inflight","turn":"t1","reason":"shutdown"})));
    assert_eq!(end["requeued"], 3);
}

#[tokio::test]
async fn c3_the_same_parked_receive_again_replaces_the_first() {
    let hive = hive(&["ada", "bob"]).await;
    let (mut first, mut second) = (hive.peer("bob"), hive.peer("bob"));
    first.park(&json!({"cmd":"recv","turn":"t1","req":"r1"}));
    second.park(&json!({"cmd":"recv","turn":"t1","req":"r1"}));
    let gone = first.hear();
    assert_eq!((code(&gone), &gone["id"]), ("replaced", &json!(1)));
    hive.send("ada", "bob", "for the second");
    assert_eq!(mail(&second.hear()), [("for the second", 1)]);
}
