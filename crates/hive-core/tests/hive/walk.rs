//! The walk of the README: two agents by hand, with nothing but the command line and socat, and
//! the plug pulled in the middle.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::peer::{Doors, hive, ok, run};

/// What `echo REQUEST | socat -t 10 - UNIX-CONNECT:SOCKET` prints.
fn socat(socket: &Path, request: &Value) -> Value {
    let address = format!("UNIX-CONNECT:{}", socket.display());
    let mut socat = Command::new("socat");
    let said = run(
        socat.args(["-t", "10", "-", &address]),
        &format!("{request}\n"),
    );
    assert_eq!(said.code, 0, "{}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

#[tokio::test]
async fn c1_c3_two_agents_by_hand_and_the_plug_pulled() {
    if Command::new("socat").arg("-V").output().is_err() {
        return;
    }
    let mut hive = hive(&[]).await;
    for name in ["ada", "bob"] {
        let spawned = hive.cli_json(&["spawn", name, "--runtime", "none"]);
        assert_eq!(spawned["agent"]["state"], "external");
    }
    let list = hive.cli_json(&["list"]);
    let sockets: Vec<_> = (0..2)
        .map(|agent| list["agents"][agent]["socket"].as_str().unwrap().to_owned())
        .collect();
    let (ada, bob) = (Path::new(&sockets[0]), Path::new(&sockets[1]));

    let id = hive.cli_json(&["send", "ada", "please ask bob"])["id"].clone();
    let got = ok(socat(ada, &json!({"cmd":"recv","turn":"t1"})));
    assert_eq!(got["messages"][0]["body"], "please ask bob");
    let asked = json!({"cmd":"send","to":"bob","body":"well?","key":"ask-bob"});
    let sent = ok(socat(ada, &asked))["message_id"].clone();
    let held = ok(socat(
        bob,
        &json!({"cmd":"recv","turn":"b1","wait_seconds":5}),
    ));
    assert_eq!(held["messages"][0]["body"], "well?");

    hive.restart().await.unwrap();
    assert_eq!(
        ok(socat(ada, &asked))["message_id"],
        sent,
        "sent once, however often"
    );
    let number: i64 = id.as_str().unwrap().parse().unwrap();
    let acked = ok(socat(
        ada,
        &json!({"cmd":"ack_turn","turn":"t1","ids":[number]}),
    ));
    assert_eq!(acked["acked"], 1);
    let again = ok(socat(bob, &json!({"cmd":"recv","turn":"b2"})));
    assert_eq!(
        (
            &again["messages"][0]["id"],
            &again["messages"][0]["delivery"]
        ),
        (&sent, &json!(2))
    );
    let reply = json!({"cmd":"send","to":"operator","body":"all well","in_reply_to":sent});
    ok(socat(bob, &reply));
    assert_eq!(
        ok(socat(
            bob,
            &json!({"cmd":"ack_turn","turn":"b2","ids":[sent]})
        ))["acked"],
        1
    );

    hive.restart().await.unwrap();
    assert_eq!(
        hive.cli_json(&["receipt", id.as_str().unwrap()])["state"],
        "acked"
    );
    let receipt = hive.cli_json(&["receipt", &sent.to_string()]);
    assert_eq!(
        (&receipt["state"], &receipt["deliveries"]),
        (&json!("acked"), &json!(2))
    );
    assert_eq!(hive.cli_json(&["inbox"])["messages"][0]["body"], "all well");
    assert_eq!(
        hive.cli_json(&["status"])["undelivered"],
        1,
        "the operator's own"
    );
}
