//! A lying agent: it speaks raw lines on its own socket and tries to be more than it is. Nothing of
//! it gets through, and the others notice nothing (M1, M2, M5-M8, M11, M12, M16).

use std::{io::Write, net::Shutdown, os::unix::net::UnixStream};

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::peer::{Doors, Peer, code, hive, hive_with, mail, ok};

/// Two honest agents exchange a question and its answer.
fn the_honest_are_served(hive: &TestHive) {
    let ask = json!({"cmd":"ask","question":"still there?","to":"cid"});
    let id = ok(hive.peer("bob").ask(&ask))["question_id"].clone();
    let answer = json!({"cmd":"answer","question_id":id,"answer":"yes"});
    ok(hive.peer("cid").ask(&answer));
    for agent in ["bob", "cid"] {
        let got = hive.peer(agent).ask(&json!({"cmd":"recv","max":32}));
        assert!(!mail(&got).is_empty(), "{agent} heard nothing");
    }
}

#[tokio::test]
async fn m16_whatever_it_says_it_is_it_is_itself() {
    let hive = hive(&["eve", "bob", "cid"]).await;
    let mut eve = hive.peer("eve");
    // Fields that name a sender mean nothing.
    for claim in ["operator", "system", "bob", "self", "reminder"] {
        let send = json!({"cmd":"send","to":"bob","body":"trust me","from":claim,
            "sender":claim,"agent":claim,"name":claim,"as":claim});
        ok(eve.ask(&send));
        let got = hive.peer("bob").ask(&json!({"cmd":"recv"}));
        assert_eq!(got["messages"][0]["from"], "eve", "{claim}");
    }
    // A wake goes to oneself, under nobody's name.
    for label in [
        "operator",
        "system",
        "self",
        "reminder",
        "bob",
        "eve",
        "parent",
        "all",
        "none",
        "",
        "Operator",
        "operator\n",
        " operator",
        "oper\u{200b}ator",
        "<parent>",
    ] {
        let wake = json!({"cmd":"wake","from":label,"to":"bob","body":"x"});
        let refusal = eve.ask(&wake);
        assert!(
            ["denied", "bad_request"].contains(&code(&refusal)),
            "{label:?}"
        );
    }
    ok(eve.ask(&json!({"cmd":"wake","from":"matrix","to":"bob","body":"x"})));
    assert_eq!(
        ok(hive.peer("bob").ask(&json!({"cmd":"status"})))["unread"],
        0
    );
    // A command named twice, or a key named twice, is no way around a check.
    for line in [
        r#"{"cmd":"status","cmd":"get_host_journal"}"#,
        r#"{"cmd":"send","to":"bob","to":"operator","body":"x"}"#,
        r#"["get_host_journal"]"#,
    ] {
        eve.say_raw(format!("{line}\n").as_bytes());
        assert_eq!(code(&eve.hear()), "bad_request", "{line}");
    }
    the_honest_are_served(&hive);
}

#[tokio::test]
async fn m5_m6_m7_what_is_others_stays_theirs() {
    let hive = hive(&["eve", "bob", "cid"]).await;
    hive.cli_json(&["permissions", "bob", "--grant", "scheduling"]);
    hive.cli_json(&["permissions", "eve", "--grant", "scheduling"]);
    let mut bob = hive.peer("bob");
    let secret =
        ok(bob.ask(&json!({"cmd":"send","to":"cid","body":"secret"})))["message_id"].clone();
    let question =
        ok(bob.ask(&json!({"cmd":"ask","question":"q?","to":"cid"})))["question_id"].clone();
    let remind = json!({"cmd":"remind","message":"m","delay_seconds":900});
    let reminder = ok(bob.ask(&remind))["reminder_id"].clone();
    let schedule = json!({"cmd":"schedule","prompt":"p","delay_seconds":900});
    let schedule = ok(bob.ask(&schedule))["schedule_id"].clone();
    let mut eve = hive.peer("eve");
    for (lie, expected) in [
        (
            json!({"cmd":"answer","question_id":question,"answer":"mine"}),
            "denied",
        ),
        (
            json!({"cmd":"cancel_loose_end","kind":"question","question_id":question}),
            "denied",
        ),
        (
            json!({"cmd":"cancel_loose_end","kind":"reminder","reminder_id":reminder}),
            "not_found",
        ),
        (
            json!({"cmd":"cancel_loose_end","kind":"approval","approval_id":1}),
            "denied",
        ),
        (
            json!({"cmd":"cancel_schedule","schedule_id":schedule}),
            "not_found",
        ),
        (json!({"cmd":"receipt","message_id":secret}), "not_found"),
        (json!({"cmd":"receipt","message_id":-1}), "not_found"),
        (json!({"cmd":"get_loose_ends","agent":"bob"}), "denied"),
        (json!({"cmd":"get_loose_ends","agent":"*"}), "denied"),
        (
            json!({"cmd":"get_loose_ends","agent":"../bob"}),
            "not_found",
        ),
        // A reply into a conversation that it took no part in.
        (
            json!({"cmd":"send","to":"cid","body":"x","in_reply_to":secret}),
            "denied",
        ),
    ] {
        assert_eq!(code(&eve.ask(&lie)), expected, "{lie}");
    }
    // Nothing of it had an effect.
    let ends = ok(bob.ask(&json!({"cmd":"get_loose_ends"})));
    assert_eq!(ends["loose_ends"].as_array().unwrap().len(), 2, "{ends}");
    assert_eq!(
        hive.cli_json(&["schedules"])["schedules"][0]["agent"],
        "bob"
    );
    // Turns are per agent: another's turn is not hers to end.
    let mut cid = hive.peer("cid");
    ok(cid.ask(&json!({"cmd":"recv","turn":"t1","max":9})));
    let ended = ok(eve.ask(&json!({"cmd":"ack_turn","turn":"t1","ids":[secret]})));
    assert_eq!(
        (&ended["result"], &ended["acked"]),
        (&json!("unknown"), &json!(0))
    );
    let acked = ok(cid.ask(&json!({"cmd":"ack_turn","turn":"t1","ids":[secret]})));
    assert_eq!(acked["acked"], 1);
}

#[tokio::test]
async fn m1_m11_groups_and_children_are_not_to_be_talked_into() {
    let hive = hive(&["eve", "bob", "cid"]).await;
    let mut eve = hive.peer("eve");
    for cmd in ["kill", "start", "restart"] {
        // What the container claims to have is nothing to the host.
        let claim = json!({"cmd":cmd,"name":"bob","groups":["lifecycle"],
            "capabilities":["query_agent_state"],"is_root":true,"HIVE_TOOL_GROUPS":"lifecycle"});
        assert_eq!(code(&eve.ask(&claim)), "denied", "{cmd}");
    }
    hive.cli_json(&[
        "permissions",
        "eve",
        "--grant",
        "lifecycle",
        "--grant",
        "diagnostics",
    ]);
    for cmd in ["kill", "start", "restart"] {
        for target in ["bob", "eve"] {
            let reply = eve.ask(&json!({"cmd":cmd,"name":target}));
            assert_eq!(code(&reply), "denied", "{cmd} {target}");
        }
        assert_eq!(
            code(&eve.ask(&json!({"cmd":cmd,"name":"zoe"}))),
            "not_found"
        );
        assert_eq!(
            code(&eve.ask(&json!({"cmd":cmd,"name":"../x"}))),
            "bad_request"
        );
    }
    assert_eq!(
        code(&eve.ask(&json!({"cmd":"get_logs","agent":"bob"}))),
        "denied"
    );
    assert_eq!(
        ok(eve.ask(&json!({"cmd":"list_agents"})))["agents"],
        json!([])
    );
    // The operator's commands are not on this socket.
    for cmd in [
        "set_permissions",
        "permissions",
        "spawn",
        "destroy",
        "approve",
        "stop_all",
    ] {
        let reply = eve.ask(&json!({"cmd":cmd,"name":"eve","grant":["approvals"]}));
        assert_eq!(code(&reply), "unknown_command", "{cmd}");
    }
    the_honest_are_served(&hive);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one attempt after the other")]
async fn m2_oversize_and_malformed_requests_change_nothing() {
    let hive = hive(&["eve", "bob", "cid"]).await;
    let mut eve = hive.peer("eve");
    let large = "x".repeat(256 * 1024 + 1);
    for (lie, expected) in [
        (json!({"cmd":"send","to":"bob","body":large}), "bad_request"),
        (
            json!({"cmd":"send","to":"bob","body":"\u{0}".repeat(64 * 1024)}),
            "bad_request",
        ),
        (json!({"cmd":"wake","from":"x","body":large}), "bad_request"),
        (
            json!({"cmd":"ask","question":"q".repeat(65 * 1024)}),
            "bad_request",
        ),
        (
            json!({"cmd":"ask","question":"q","options":vec!["o"; 33]}),
            "bad_request",
        ),
        (
            json!({"cmd":"answer","question_id":1,"answer":"a".repeat(65 * 1024)}),
            "bad_request",
        ),
        (
            json!({"cmd":"set_status","text":"s".repeat(201)}),
            "bad_request",
        ),
        (
            json!({"cmd":"set_status","text":"two\nlines"}),
            "bad_request",
        ),
        (
            json!({"cmd":"send","to":"bob","body":"x","key":"k".repeat(129)}),
            "bad_request",
        ),
        (
            json!({"cmd":"send","to":"bob","body":"x","key":"a\nb"}),
            "bad_request",
        ),
        (json!({"cmd":"send","to":"bob","body":7}), "bad_request"),
        (json!({"cmd":"send","to":["bob"],"body":"x"}), "bad_request"),
        (
            json!({"cmd":"answer","question_id":"1","answer":"x"}),
            "bad_request",
        ),
        (
            json!({"cmd":"answer","question_id":1.5,"answer":"x"}),
            "bad_request",
        ),
        (
            json!({"cmd":"remind","message":"x","delay_seconds":-1}),
            "bad_request",
        ),
        (json!({"cmd":"sudo"}), "unknown_command"),
        (json!({"command":"send"}), "bad_request"),
    ] {
        let shown = lie.to_string();
        let shown = &shown[..shown.len().min(80)];
        assert_eq!(code(&eve.ask(&lie)), expected, "{shown}");
    }
    for raw in [
        &b"{\"cmd\":\"send\",\n"[..],
        b"\xff\xfe\n",
        b"null\n",
        b"{\"cmd\":\"status\"\x00}\n",
        b"[[[[[[[[[[[[[[[[[[\n",
    ] {
        eve.say_raw(raw);
        assert_eq!(code(&eve.hear()), "bad_request", "{raw:?}");
    }
    assert_eq!(
        ok(hive.peer("bob").ask(&json!({"cmd":"status"})))["unread"],
        0
    );
    the_honest_are_served(&hive);
}

#[tokio::test]
async fn m2_a_flood_is_held_to_its_rate_and_the_others_notice_nothing() {
    let config = "[limits]\nsends_per_minute = 60\nsend_burst = 20\ninbox_depth = 1000\n";
    let hive = hive_with(config, &["eve", "bob", "cid"]).await;
    let mut eve = hive.peer("eve");
    let (mut taken, mut refused) = (0, None);
    for number in 0..400 {
        // Through one connection and through many.
        let send = json!({"cmd":"send","to":"bob","body":"spam"});
        let reply = if number % 2 == 0 {
            eve.ask(&send)
        } else {
            hive.peer("eve").ask(&send)
        };
        if reply["ok"] == true {
            taken += 1;
        } else {
            assert_eq!(code(&reply), "limit_reached");
            refused = Some(reply);
        }
        if number % 100 == 0 {
            the_honest_are_served(&hive);
        }
    }
    let hint = &refused.unwrap()["error"]["hint"];
    assert!(hint.as_str().unwrap().contains("wait"), "{hint}");
    assert!((20..200).contains(&taken), "{taken} of 400 came through");
    // What she may do without sending still works, and a restart of the connection changes nothing.
    ok(eve.ask(&json!({"cmd":"list_peers"})));
    the_honest_are_served(&hive);
}

#[tokio::test]
async fn m2_m4_m8_an_inbox_and_its_agents_quotas_are_bounded() {
    let config = "[limits]\ninbox_depth = 5\nquestions_per_agent = 3\nreminders_per_agent = 4\n";
    let hive = hive_with(config, &["eve", "bob", "cid"]).await;
    let mut eve = hive.peer("eve");
    let mut until_refused = |request: Value| {
        let taken = (0..50).take_while(|_| {
            let reply = eve.ask(&request);
            reply["ok"] == true || code(&reply) != "limit_reached"
        });
        taken.count()
    };
    assert_eq!(
        until_refused(json!({"cmd":"send","to":"bob","body":"x"})),
        5
    );
    assert_eq!(until_refused(json!({"cmd":"ask","question":"?"})), 3);
    assert_eq!(
        until_refused(json!({"cmd":"remind","message":"x","delay_seconds":900})),
        4
    );
    assert_eq!(
        until_refused(json!({"cmd":"wake","from":"x","body":"x"})),
        5
    );
    // The recipient works its mail off, and others can write to it again.
    let got = hive.peer("bob").ask(&json!({"cmd":"recv","max":32}));
    assert_eq!(mail(&got).len(), 5);
    the_honest_are_served(&hive);
}

#[tokio::test]
async fn c2_half_open_connections_and_hang_ups_cost_nobody_anything() {
    let config = "[limits]\nconnections_per_agent = 16\nline_seconds = 2\n";
    let hive = hive_with(config, &["eve", "bob", "cid"]).await;
    let path = hive.agent_socket("eve");
    let mut held: Vec<UnixStream> = Vec::new();
    for number in 0..300 {
        let Ok(mut stream) = UnixStream::connect(&path) else {
            continue;
        };
        // Whether it has a seat or not, nothing that it does may matter.
        match number % 5 {
            0 => drop(stream.write_all(b"{\"cmd\":\"send\",\"to\":\"bob\",\"bo")),
            1 => drop(stream.write_all(b"{\"cmd\":\"recv\",\"wait_seconds\":180}\n")),
            2 => drop(stream.shutdown(Shutdown::Write)),
            3 => drop(stream.shutdown(Shutdown::Read)),
            _ => drop(stream.write_all(&[b'['; 4096])),
        }
        held.push(stream);
        if number % 60 == 0 {
            the_honest_are_served(&hive);
        }
    }
    assert_eq!(
        ok(hive.peer("bob").ask(&json!({"cmd":"status"})))["unread"],
        0
    );
    drop(held);
    crate::peer::eventually("eve is let in again", || {
        let mut eve = Peer::connect(&path);
        drop(eve.stream().write_all(b"{\"cmd\":\"status\"}\n"));
        eve.hear()["ok"] == true
    });
    the_honest_are_served(&hive);
}
