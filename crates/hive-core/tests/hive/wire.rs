//! The line format: replies in order without ids, as they come with ids, and errors that leave
//! the connection alive.

use serde_json::{Value, json};

use crate::peer::{Doors, code, hive, mail, ok};

#[tokio::test]
async fn c2_with_ids_replies_overtake_a_parked_receive() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    bob.park(&json!({"cmd":"recv","turn":"t1"}));
    for id in [
        json!(7),
        json!("seven"),
        json!(-9_223_372_036_854_775_808_i64),
    ] {
        let status = bob.ask(&json!({"cmd":"status","id":id}));
        assert_eq!(ok(status)["id"], id);
    }
    let failed = bob.ask(&json!({"cmd":"send","to":"nobody","body":"","id":8}));
    assert_eq!((code(&failed), &failed["id"]), ("not_found", &json!(8)));
    hive.send("ada", "bob", "at last");
    let woken = bob.hear();
    assert_eq!(
        (&woken["id"], mail(&woken)),
        (&json!(1), vec![("at last", 1)])
    );
}

#[tokio::test]
async fn c2_without_ids_replies_come_in_order() {
    let hive = hive(&["ada", "bob"]).await;
    let mut bob = hive.peer("bob");
    bob.say(&json!({"cmd":"recv","wait_seconds":180}));
    bob.say(&json!({"cmd":"status"}));
    bob.say_raw(b"nonsense\n");
    bob.say(&json!({"cmd":"status","id":"named"}));
    assert_eq!(bob.hear()["id"], "named", "a named reply waits for nobody");
    hive.send("ada", "bob", "first");
    assert_eq!(mail(&bob.hear()), [("first", 1)]);
    assert_eq!(ok(bob.hear())["unread"], 0);
    assert_eq!(code(&bob.hear()), "bad_request");
}

#[tokio::test]
async fn c2_many_pipelined_requests_are_all_answered() {
    let hive = hive(&["ada", "bob"]).await;
    let mut ada = hive.peer("ada");
    // More than may be in flight at a time, in one write.
    let lines: String = (0..200)
        .map(|id| {
            format!(
                "{}\n",
                json!({"cmd":"send","to":"bob","body":id.to_string(),"id":id})
            )
        })
        .collect();
    ada.say_raw(lines.as_bytes());
    let mut sent: Vec<(i64, i64)> = (0..200)
        .map(|_| ok(ada.hear()))
        .map(|reply| {
            (
                reply["message_id"].as_i64().unwrap(),
                reply["id"].as_i64().unwrap(),
            )
        })
        .collect();
    sent.sort_unstable();
    let order: Vec<i64> = sent.into_iter().map(|(_, id)| id).collect();
    assert_eq!(
        order,
        (0..200).collect::<Vec<_>>(),
        "carried out in the order they came"
    );
}

#[tokio::test]
async fn c2_a_line_that_makes_no_sense_is_answered_and_the_connection_lives() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let deep = format!("{{\"cmd\":\"status\",\"x\":{}", "[".repeat(200_000));
    let deep_value = format!(
        "{{\"cmd\":\"send\",\"to\":{}1{},\"body\":\"\"}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let cases: &[(&[u8], &str)] = &[
        (b"{", "bad_request"),
        (b"nonsense", "bad_request"),
        (b"[]", "bad_request"),
        (b"[\"status\"]", "bad_request"),
        (b"\"status\"", "bad_request"),
        (b"null", "bad_request"),
        (b"7", "bad_request"),
        (b"{}", "bad_request"),
        (b"{\"cmd\":7}", "bad_request"),
        (b"{\"cmd\":\"status\"}x", "bad_request"),
        (b"{\"cmd\":\"status\"}{\"cmd\":\"status\"}", "bad_request"),
        (b"{\"cmd\":\"status\",\"cmd\":\"recv\"}", "bad_request"),
        (b"{\"cmd\":\"recv\",\"max\":1,\"max\":2}", "bad_request"),
        (b"{\"cmd\":\"recv\",\"max\":-1}", "bad_request"),
        (b"{\"cmd\":\"recv\",\"max\":1e99}", "bad_request"),
        (b"{\"cmd\":\"recv\",\"turn\":\"\"}", "bad_request"),
        (b"{\"cmd\":\"recv\",\"turn\":\"a\\u0000b\"}", "bad_request"),
        (b"{\"cmd\":\"send\",\"to\":\"ada\"}", "bad_request"),
        (
            b"{\"cmd\":\"send\",\"to\":\"ada\",\"body\":\"\xff\xfe\"}",
            "bad_request",
        ),
        (
            b"{\"cmd\":\"send\",\"to\":\"ada\",\"body\":\"\\ud800\"}",
            "bad_request",
        ),
        (b"{\"cmd\":\"\xff\"}", "bad_request"),
        (b"\xff\xfe\x00\x01", "bad_request"),
        (b"\xef\xbb\xbf{\"cmd\":\"status\"}", "bad_request"),
        (b"{\"cmd\":\"status\",\"id\":1.5}", "bad_request"),
        (b"{\"cmd\":\"status\",\"id\":[1]}", "bad_request"),
        (b"{\"cmd\":\"reciev\"}", "unknown_command"),
        (b"{\"cmd\":\"\"}", "unknown_command"),
        (b"{\"cmd\":\"Status\"}", "unknown_command"),
        (deep.as_bytes(), "bad_request"),
        (deep_value.as_bytes(), "bad_request"),
    ];
    for (line, expected) in cases {
        ada.say_raw(&[line, &b"\n"[..]].concat());
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
        let reply = ada.hear();
        assert_eq!(code(&reply), *expected, "{shown}: {reply}");
        assert!(
            reply.to_string().len() < 2_000,
            "{shown}: the reply is bounded"
        );
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(!message.contains(char::is_control), "{shown}: {message:?}");
    }
    let status = ok(ada.ask(&json!({"cmd":"status"})));
    assert_eq!(status["unread"], 0, "none of it left a trace");
}

#[tokio::test]
async fn c2_a_broken_request_with_an_id_is_answered_under_it() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    for line in [
        json!({"cmd":"send","id":5}),
        json!({"cmd":"nonsense","id":5}),
        json!({"cmd":[],"id":5}),
        json!({"id":5}),
    ] {
        assert_eq!(ada.ask(&line)["id"], 5, "{line}");
    }
}

#[tokio::test]
async fn c2_blank_lines_carriage_returns_and_a_last_line_without_an_end() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    ada.say_raw(b"\n\r\n   \n{\"cmd\":\"status\",\"later\":{\"field\":[1]}}\r\n");
    assert_eq!(ok(ada.hear())["unread"], 0);
    ada.say_raw(b"{\"cmd\":\"status\"}");
    ada.half_close();
    let last: Value = ada.hear();
    assert_eq!(ok(last)["unread"], 0);
    assert!(ada.is_over());
}
