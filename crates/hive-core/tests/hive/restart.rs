//! The daemon ends, gently or not, and everything is found where it was.

use std::{os::unix::fs::FileTypeExt, path::Path};

use serde_json::json;

use crate::peer::{Doors, cli, code, hive, mail, ok};

#[tokio::test]
async fn c13_a_leased_turn_is_acked_across_a_kill() {
    let mut hive = hive(&["ada", "bob"]).await;
    let ids = ["a", "b"].map(|body| hive.send("ada", "bob", body));
    let receive = json!({"cmd":"recv","turn":"t1","req":"r1"});
    assert_eq!(mail(&hive.peer("bob").ask(&receive)), [("a", 1)]);
    ok(hive
        .peer("bob")
        .ask(&json!({"cmd":"confirm","turn":"t1","req":"r1"})));
    hive.restart().await.unwrap();

    let mut bob = hive.peer("bob");
    let status = ok(bob.ask(&json!({"cmd":"status"})));
    assert_eq!(
        status,
        json!({"ok":true,"unread":1,"inflight":1,"turn":"t1"})
    );
    assert_eq!(
        mail(&bob.ask(&receive)),
        [("a", 1)],
        "the same receive, the same batch"
    );
    let joined = bob.ask(&json!({"cmd":"recv","turn":"current","req":"r2"}));
    assert_eq!(mail(&joined), [("b", 1)]);
    let ack = json!({"cmd":"ack_turn","turn":"t1"});
    let acked = ok(bob.ask(&ack));
    assert_eq!(
        acked,
        json!({"ok":true,"result":"acked","acked":1,"requeued":1})
    );

    hive.restart().await.unwrap();
    let mut bob = hive.peer("bob");
    assert_eq!(
        ok(bob.ask(&ack))["result"],
        "already",
        "the truth survives too"
    );
    assert_eq!(
        mail(&bob.ask(&json!({"cmd":"recv","turn":"t2","max":9}))),
        [("b", 2)]
    );
    let receipt = hive.cli_json(&["receipt", &ids[0].to_string()]);
    assert_eq!(
        (&receipt["state"], &receipt["deliveries"]),
        (&json!("acked"), &json!(1))
    );
}

#[tokio::test]
async fn c13_a_new_turn_after_a_kill_gets_what_its_predecessor_held() {
    let mut hive = hive(&["ada", "bob"]).await;
    for body in ["a", "b", "c"] {
        hive.send("ada", "bob", body);
    }
    let acked = hive.peer("bob").ask(&json!({"cmd":"recv"}));
    assert_eq!(mail(&acked), [("a", 1)]);
    ok(hive.peer("bob").ask(&json!({"cmd":"recv","turn":"t1"})));
    hive.restart().await.unwrap();

    let mut bob = hive.peer("bob");
    let got = bob.ask(&json!({"cmd":"recv","turn":"t2","max":9}));
    assert_eq!(
        mail(&got),
        [("b", 2), ("c", 1)],
        "acked stays acked, redelivered says so"
    );
    assert_eq!(
        ok(bob.ask(&json!({"cmd":"ack_turn","turn":"t1"})))["result"],
        "superseded"
    );
}

#[tokio::test]
async fn m2_a_key_is_one_message_across_a_kill() {
    let mut hive = hive(&["ada", "bob"]).await;
    let send = json!({"cmd":"send","to":"bob","body":"once","key":"k"});
    let first = ok(hive.peer("ada").ask(&send));
    hive.restart().await.unwrap();
    let again = ok(hive.peer("ada").ask(&send));
    assert_eq!(
        (&again["message_id"], &again["duplicate"]),
        (&first["message_id"], &json!(true))
    );
    let next = hive.send("ada", "bob", "next");
    assert!(
        next > first["message_id"].as_i64().unwrap(),
        "ids are never given twice"
    );
}

#[tokio::test]
async fn c4_c9_c13_agents_ports_parents_and_sockets_come_back() {
    let mut hive = hive(&["ada"]).await;
    let spawn = json!({"cmd":"spawn","name":"kid","parent":"ada","runtime":"none"});
    ok(hive.operator().ask(&spawn));
    let before = hive.cli_json(&["list"]);
    let row = &before["agents"][0];
    assert_eq!(
        (&row["name"], &row["state"]),
        (&json!("ada"), &json!("external"))
    );
    let port = row["port"].as_u64().unwrap();
    assert!((8100..=8999).contains(&port), "{port}");
    assert_eq!(row["socket"], json!(hive.agent_socket("ada")));

    for gently in [false, true] {
        if gently {
            hive.terminate().await.unwrap();
        }
        hive.restart().await.unwrap();
        assert_eq!(hive.cli_json(&["list"]), before);
        for agent in ["ada", "kid"] {
            ok(hive.peer(agent).ask(&json!({"cmd":"status"})));
        }
    }
}

#[tokio::test]
async fn c12_destroy_keeps_the_mail_and_recreating_finds_it() {
    let mut hive = hive(&["ada", "bob"]).await;
    for body in ["waiting", "held"] {
        hive.send("ada", "bob", body);
    }
    ok(hive.peer("bob").ask(&json!({"cmd":"recv","turn":"t1"})));
    let port = hive.cli_json(&["list"])["agents"][1]["port"].clone();
    let destroyed = hive.cli_json(&["destroy", "bob", "--yes"]);
    assert_eq!(destroyed["kept_messages"], 2);
    assert!(!is_socket(&hive.agent_socket("bob")), "its socket is gone");
    hive.restart().await.unwrap();
    assert!(!is_socket(&hive.agent_socket("bob")), "and stays away");

    hive.spawn_agent("bob").await.unwrap();
    assert_eq!(hive.cli_json(&["list"])["agents"][1]["port"], port);
    let got = hive
        .peer("bob")
        .ask(&json!({"cmd":"recv","turn":"t2","max":9}));
    assert_eq!(mail(&got).len(), 2, "{got}");
}

#[tokio::test]
async fn c12_who_waits_on_a_destroyed_agent_is_told_and_cut_off() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    bob.park(&json!({"cmd":"recv","turn":"t1"}));
    assert_eq!(hive.cli(&["destroy", "bob", "--yes"]).code, 0);
    assert_eq!(code(&bob.hear()), "not_found");
    assert!(bob.is_over(), "nobody speaks as bob any more");
    hive.spawn_agent("bob").await.unwrap();
    hive.send("ada", "bob", "to the new one");
    let got = hive.peer("bob").ask(&json!({"cmd":"recv"}));
    assert_eq!(mail(&got), [("to the new one", 1)]);
}

#[tokio::test]
async fn c3_sigterm_drains_and_tells_those_who_wait() {
    let mut hive = hive(&["ada", "bob"]).await;
    let (mut bob, mut without_turn) = (hive.peer("bob"), hive.peer("bob"));
    bob.park(&json!({"cmd":"recv","turn":"t1"}));
    without_turn.park(&json!({"cmd":"recv"}));
    let mut idle = hive.peer("ada");
    hive.terminate().await.unwrap();
    for peer in [&mut bob, &mut without_turn] {
        let told = peer.hear();
        assert_eq!((code(&told), &told["id"]), ("shutting_down", &json!(1)));
        assert!(peer.is_over());
    }
    assert!(idle.is_over());
    assert_eq!(cli(hive.root(), &["list"], "").code, 4);

    hive.restart().await.unwrap();
    hive.send("ada", "bob", "after");
    let got = hive.peer("bob").ask(&json!({"cmd":"recv"}));
    assert_eq!(
        mail(&got),
        [("after", 1)],
        "nothing was handed to those who are gone"
    );
}

#[tokio::test]
async fn c2_a_second_daemon_is_refused_with_the_pid_of_the_first() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let refused = hive.cli(&["serve", "--port", "0"]);
    assert_eq!(refused.code, 1);
    let pid = hive.pid().unwrap().to_string();
    assert!(refused.stderr.contains(&pid), "{pid}: {}", refused.stderr);
    ok(ada.ask(&json!({"cmd":"status"})));
    ok(hive.peer("ada").ask(&json!({"cmd":"status"})));
}

fn is_socket(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.file_type().is_socket())
}
