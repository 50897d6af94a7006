//! Usage limits, seen from the sockets: what one agent reports must not reach those who do not
//! share its credential. Who shares one and how they go on is tabled in `credentials.rs` and
//! `harnesses/limits.rs`.

use serde_json::{Value, json};

use crate::peer::{Doors, hive, ok};

fn limited(resets_at: &str) -> Value {
    json!({"cmd":"post_state","turn_state":"idle","since":"2026-01-02T03:04:05Z",
        "status":"rate_limited","credential":"host","resets_at":resets_at})
}

fn standing(reply: Value) -> Vec<Value> {
    let requests = ok(reply)["requests"].as_array().unwrap().clone();
    requests
        .into_iter()
        .map(|request| request["action"].clone())
        .collect()
}

#[tokio::test]
async fn t6_a_lying_agent_parks_nobody_else_and_the_operator_lifts_its_wait() {
    let hive = hive(&["ada", "eve"]).await;
    let hello = json!({"cmd":"control","hello":true});
    let (mut ada, mut eve) = (hive.peer("ada"), hive.peer("eve"));
    assert_eq!(standing(ada.ask(&hello)), [Value::Null; 0]);
    assert_eq!(standing(eve.ask(&hello)), [Value::Null; 0]);
    ok(eve.ask(&limited("2099-01-01T00:00:00Z")));
    assert_eq!(
        standing(ada.ask(&hello)),
        [Value::Null; 0],
        "another credential"
    );
    let state = ok(hive
        .operator()
        .ask(&json!({"cmd":"agent_state","name":"ada"})));
    assert_eq!(
        (&state["resets_at"], &state["held_until"]),
        (&Value::Null, &Value::Null)
    );
    let state = ok(hive
        .operator()
        .ask(&json!({"cmd":"agent_state","name":"eve"})));
    assert!(state["held_until"].is_string(), "{state}");

    let lifted = hive.cli_json(&["lift", "eve"]);
    assert_eq!(
        lifted,
        json!({"schema":1,"credential":"own:eve","was_held":true,"released":1})
    );
    assert_eq!(
        standing(eve.ask(&json!({"cmd":"control"}))),
        [json!({"kind":"release"})]
    );
    ok(eve.ask(&limited("2099-01-01T00:00:00Z")));
    let state = ok(hive
        .operator()
        .ask(&json!({"cmd":"agent_state","name":"eve"})));
    assert_eq!(
        state["held_until"],
        Value::Null,
        "what was lifted does not come back repeated"
    );
    assert_eq!(hive.cli_json(&["lift", "eve"])["was_held"], false);
    assert_eq!(hive.cli(&["lift", "zoe"]).code, 3);
}
