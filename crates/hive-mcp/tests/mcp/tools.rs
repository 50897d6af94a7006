//! Each tool once as it is meant, and what it says when it is not.

use hive_mcp::{Options, groups::Groups};
use hive_testkit::hive::TestHive;
use hive_wire::agent::{Answer, Recv};
use serde_json::{Value, json};

use crate::client::{Mcp, hive, options, wire};

async fn ada(hive: &TestHive) -> Mcp {
    Mcp::shaken(&options(hive), "2025-11-25").await
}

/// The next message in an agent's inbox; its body, as JSON where it is an event.
async fn next(hive: &TestHive, agent: &str) -> (String, Value) {
    let recv = Recv {
        wait_seconds: 30,
        max: 1,
        ..Recv::default()
    };
    let got = wire(hive, agent, recv).await;
    let message = &got.messages[0];
    let body = &message.body;
    let body = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
    (message.from.to_string(), body)
}

#[tokio::test]
async fn m2_send_reaches_peers_operator_and_parent() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    for to in ["bob", "operator", "<parent>"] {
        let sent = ada.ok("send", json!({"to": to, "body": "hi"})).await;
        assert_eq!(sent["duplicate"], false);
    }
    assert_eq!(next(&hive, "bob").await, ("ada".to_owned(), json!("hi")));
    let inbox = hive
        .host_client()
        .call(&hive_wire::host::Inbox { after: None })
        .await
        .unwrap();
    assert_eq!(inbox.messages.len(), 2);
}

#[tokio::test]
async fn the_same_key_is_one_message() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let args = json!({"to": "bob", "body": "hi", "key": "k"});
    let first = ada.ok("send", args.clone()).await;
    let second = ada.ok("send", args).await;
    assert_eq!(first["message_id"], second["message_id"]);
    assert_eq!(second["duplicate"], true);
    // Without a key two calls are two messages.
    let other = ada.ok("send", json!({"to": "bob", "body": "hi"})).await;
    assert_ne!(other["message_id"], first["message_id"]);
}

#[tokio::test]
async fn what_does_not_fit_is_said_so_that_the_model_can_mend_it() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let long = "x".repeat(256 * 1024 + 1);
    for (tool, args, words) in [
        ("send", json!({"to": "bob"}), "missing field `body`"),
        (
            "send",
            json!({"to": "bob", "body": "x", "reply_to": 1}),
            "unknown field `reply_to`",
        ),
        ("send", json!({"to": 5, "body": "x"}), "expected a string"),
        ("send", json!({"to": "bob", "body": long}), "a file"),
        ("send", json!({"to": "bobo", "body": "x"}), "bob"),
        ("send", json!({"to": "bob", "body": "x", "key": ""}), "key"),
        ("recv", json!({"wait_seconds": 181}), "0 to 180"),
        ("recv", json!({"max": 0}), "1 to 32"),
        ("recv", json!({"max": 33}), "1 to 32"),
        ("set_status", json!({"text": "a\nb"}), "one line"),
        ("set_status", json!({"text": "x".repeat(201)}), "200"),
        ("remind", json!({"message": "x"}), "delay_seconds"),
        (
            "remind",
            json!({"message": "x", "delay_seconds": 1, "at_unix_timestamp": 1}),
            "one of them",
        ),
        ("answer", json!({"question_id": 99, "answer": "x"}), "99"),
        (
            "cancel_loose_end",
            json!({"kind": "question", "reminder_id": 1}),
            "question_id",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "reminder", "reminder_id": 99}),
            "99",
        ),
        ("get_receipt", json!({"message_id": 99}), "99"),
        ("get_agent_meta", json!({"name": "nobody"}), "nobody"),
        ("get_loose_ends", json!({"agent": "bob"}), "bob"),
    ] {
        let said = ada.failure(tool, args).await;
        assert!(said.contains(words), "{tool}: {said}");
    }
}

#[tokio::test]
async fn m4_who_closes_a_circle_of_questions_is_told_by_the_reply() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let open = ada
        .ok("ask", json!({"question": "which?", "to": "bob"}))
        .await;
    assert_eq!(open.get("circle"), None);
    ada.ok(
        "cancel_loose_end",
        json!({"kind": "question", "question_id": open["question_id"]}),
    )
    .await;
    let ask: hive_wire::agent::Ask =
        serde_json::from_value(json!({"question": "which?", "to": "ada"})).unwrap();
    wire(&hive, "bob", ask).await;
    let closed = ada
        .ok("ask", json!({"question": "and you?", "to": "bob"}))
        .await;
    assert_eq!(closed["circle"], json!(["ada", "bob"]));
    let note = closed["note"].as_str().unwrap();
    assert!(note.contains("what bob asked you"), "{note}");
}

#[tokio::test]
async fn m4_m5_a_question_is_asked_listed_and_answered() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let asked = ada
        .ok(
            "ask",
            json!({"question": "Friday?", "options": ["yes", "no"], "to": "bob"}),
        )
        .await;
    let id = asked["question_id"].as_i64().unwrap();
    let open = ada.ok("get_loose_ends", json!({})).await;
    assert_eq!(open["loose_ends"][0]["kind"], "question");
    assert_eq!(open["loose_ends"][0]["question_id"], id);

    let (from, event) = next(&hive, "bob").await;
    assert_eq!(
        (from.as_str(), &event["event"]),
        ("system", &json!("question_asked"))
    );
    // Only the one who was asked can answer.
    ada.failure("answer", json!({"question_id": id, "answer": "yes"}))
        .await;
    let answer = Answer {
        question_id: hive_wire::QuestionId(id),
        answer: "no".to_owned(),
        key: None,
    };
    wire(&hive, "bob", answer).await;
    let got = ada.ok("recv", json!({"wait_seconds": 30})).await;
    let body = got["messages"][0]["body"].as_str().unwrap();
    let event: Value = serde_json::from_str(body).unwrap();
    assert_eq!(event["answer"], "no");
    let open = ada.ok("get_loose_ends", json!({})).await;
    assert_eq!(open["loose_ends"], json!([]));
}

#[tokio::test]
async fn m7_m8_reminders_fire_or_are_taken_back() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let later = ada
        .ok("remind", json!({"message": "later", "delay_seconds": 3600}))
        .await;
    let soon = ada
        .ok("remind", json!({"message": "soon", "at_unix_timestamp": 1}))
        .await;
    assert_ne!(later["reminder_id"], soon["reminder_id"]);
    let got = ada.ok("recv", json!({"wait_seconds": 30})).await;
    let body = got["messages"][0]["body"].as_str().unwrap();
    assert!(body.contains("soon"), "{got}");
    let cancel = json!({"kind": "reminder", "reminder_id": later["reminder_id"]});
    ada.ok("cancel_loose_end", cancel).await;
    let open = ada.ok("get_loose_ends", json!({})).await;
    assert_eq!(open["loose_ends"], json!([]));
}

#[tokio::test]
async fn m9_the_wish_for_another_turn_is_a_file_of_the_harness() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let wish = options(&hive)
        .harness_dir
        .unwrap()
        .join("hyperhive-continue");
    assert!(!wish.exists());
    ada.ok("request_next_turn", json!({})).await;
    assert!(wish.exists());
    ada.ok("request_next_turn", json!({})).await;

    let nowhere = Options {
        harness_dir: Some("/nowhere/at/all".into()),
        ..options(&hive)
    };
    let mut ada = Mcp::shaken(&nowhere, "2025-11-25").await;
    ada.failure("request_next_turn", json!({})).await;
}

#[tokio::test]
async fn m10_the_status_is_seen_by_peers_and_kept() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let file = options(&hive).state_dir.unwrap().join("hyperhive-status");
    ada.ok("set_status", json!({"text": " building 🐝 "})).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "building 🐝");
    let me = ada.ok("get_agent_meta", json!({})).await;
    assert_eq!(me["name"], "ada");
    assert_eq!(me["status_text"], "building 🐝");
    assert!(me["status_set_at"].is_string(), "{me}");
    let bob = Options::new(hive.agent_socket("bob"));
    let mut bob = Mcp::shaken(&bob, "2025-11-25").await;
    let peers = bob.ok("list_peers", json!({})).await;
    assert_eq!(peers["peers"][0]["name"], "ada");
    assert_eq!(peers["peers"][0]["status_text"], "building 🐝");

    ada.ok("set_status", json!({"text": ""})).await;
    assert!(!file.exists());
    let me = bob.ok("get_agent_meta", json!({"name": "ada"})).await;
    assert_eq!(me["status_text"], "");
}

#[tokio::test]
async fn c15_m10_the_names_of_hive_and_swarm_are_there_when_the_hive_has_them() {
    for (names, hive_name, swarm_name) in [
        (
            "name = \"pr1ma\"\nswarm = \"north\"\n",
            Some("pr1ma"),
            Some("north"),
        ),
        ("swarm = \"north\"\n", None, Some("north")),
        ("name = \"\"\nswarm = \"\"\n", None, None),
        ("", None, None),
    ] {
        let hive = TestHive::start_with(hive_testkit::hive::Options {
            config: format!("[hive]\nroot_agent = \"\"\n{names}"),
            ..Default::default()
        });
        let hive = hive.await.unwrap();
        hive.spawn_agent("ada").await.unwrap();
        let me = ada(&hive).await.ok("get_agent_meta", json!({})).await;
        assert_eq!(me["name"], "ada");
        // One that the hive does not have is left out, as on the wire.
        let said = |key: &str| me.get(key).map(|name| name.as_str().unwrap());
        assert_eq!(said("hive_name"), hive_name, "{names:?}");
        assert_eq!(said("swarm_name"), swarm_name, "{names:?}");
    }
}

#[tokio::test]
async fn m1_tools_of_groups_that_one_lacks_are_hidden_and_refused() {
    let hive = hive().await;
    let only = Options {
        groups: Some(Groups::parse("meta").0),
        ..options(&hive)
    };
    let mut ada = Mcp::shaken(&only, "2025-11-25").await;
    let listed = ada.ask("tools/list", json!({})).await;
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["set_status", "get_agent_meta", "list_peers"]);
    let said = ada.failure("send", json!({"to": "bob", "body": "x"})).await;
    assert!(said.contains("messaging"), "{said}");
}

#[tokio::test]
async fn m14_every_call_is_in_the_journal_before_and_after() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    ada.ok("set_status", json!({"text": "x"})).await;
    ada.failure("send", json!({"to": "nobody", "body": "x"}))
        .await;
    ada.leave().await;
    let log = std::fs::read_to_string(options(&hive).harness_dir.unwrap().join("mcp.log")).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["call"], "set_status");
    assert_eq!(lines[1]["outcome"], "ok");
    assert_eq!(lines[2]["call"], "send");
    assert_eq!(lines[3]["outcome"], "failed");
}

#[tokio::test]
async fn without_a_daemon_the_model_is_told() {
    let nowhere = Options::new("/nowhere/at/all.sock");
    let mut ada = Mcp::shaken(&nowhere, "2025-11-25").await;
    let ask = json!({"question": "is anybody there?"});
    let said = ada.failure("ask", ask).await;
    assert!(said.contains("cannot be reached"), "{said}");
}
