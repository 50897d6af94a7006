//! The control channel: requests to a harness, and what comes of them across reconnects.

use std::thread;

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::peer::{Doors, Peer, Said, cli, code, hive, ok};

/// The next poll of a harness, which waits.
fn poll(peer: &mut Peer, hello: bool, done: &Value) {
    peer.say(&json!({"cmd":"control","wait_seconds":60,"hello":hello,"done":done}));
}

fn requests(reply: Value) -> Vec<Value> {
    ok(reply)["requests"].as_array().unwrap().clone()
}

/// Runs the command line beside the test.
fn cli_beside(hive: &TestHive, args: &[&str]) -> thread::JoinHandle<Said> {
    let root = hive.root().to_owned();
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    thread::spawn(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        cli(&root, &args, "")
    })
}

#[tokio::test]
async fn c18_a_request_reaches_the_harness_and_its_answer_the_operator() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    poll(&mut ada, true, &json!([]));
    for (args, action) in [
        (&["interrupt", "ada"][..], json!({"kind":"interrupt"})),
        (&["compact", "ada"], json!({"kind":"compact"})),
        (&["new-session", "ada"], json!({"kind":"new_session"})),
        (
            &["model", "ada", "sonnet"],
            json!({"kind":"model","name":"sonnet"}),
        ),
        (&["login", "ada"], json!({"kind":"login_start"})),
        (
            &["login", "ada", "--input", "code#1"],
            json!({"kind":"login_input","text":"code#1"}),
        ),
        (
            &["login", "ada", "--cancel"],
            json!({"kind":"login_cancel"}),
        ),
    ] {
        let asked = cli_beside(&hive, &[&["--json"], args].concat());
        let request = requests(ada.hear()).remove(0);
        assert_eq!(request["action"], action);
        let done = json!([{"request_id":request["request_id"],"ok":true,"note":"as you wish"}]);
        poll(&mut ada, false, &done);
        let said = asked.join().unwrap();
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        let answer: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(answer["schema"], 1);
        assert_eq!(answer["action"], action["kind"]);
        assert_eq!(
            (&answer["state"], &answer["note"]),
            (&json!("done"), &json!("as you wish"))
        );
    }
}

#[tokio::test]
async fn c18_a_request_survives_the_harness_that_did_not_answer_it() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    poll(&mut ada, true, &json!([]));
    let asked = cli_beside(&hive, &["interrupt", "ada"]);
    let first = requests(ada.hear()).remove(0);
    drop(ada);
    let mut again = hive.peer("ada");
    poll(&mut again, true, &json!([]));
    let second = requests(again.hear()).remove(0);
    assert_eq!(
        first, second,
        "the same number: a harness that did it answers from memory"
    );
    let id = &second["request_id"];
    poll(
        &mut again,
        false,
        &json!([{"request_id":id,"ok":true},{"request_id":id,"ok":false}]),
    );
    let said = asked.join().unwrap();
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.stdout, "ada: done\n");
    let mut third = hive.peer("ada");
    let left = third.ask(&json!({"cmd":"control","hello":true}));
    assert_eq!(
        requests(left),
        [Value::Null; 0],
        "an answered request is gone"
    );
}

#[tokio::test]
async fn c18_what_cannot_be_done_is_said() {
    let hive = hive(&["ada"]).await;
    let said = hive.cli(&["interrupt", "ada"]);
    assert_eq!(said.code, 6, "{}", said.stderr);
    assert!(
        said.stderr.contains("no harness connected"),
        "{}",
        said.stderr
    );
    assert_eq!(hive.cli(&["interrupt", "zoe"]).code, 3);
    assert_eq!(hive.cli(&["model", "ada", "two words"]).code, 2);
    assert_eq!(
        hive.cli(&["login", "ada", "--input", "x", "--cancel"]).code,
        2
    );
    for own in ["release", "stop"] {
        let refused = hive
            .operator()
            .ask(&json!({"cmd":"control_agent","name":"ada","action":{"kind":own}}));
        assert_eq!(code(&refused), "bad_request", "{own}");
    }
    let mut ada = hive.peer("ada");
    poll(&mut ada, true, &json!([]));
    let asked = cli_beside(&hive, &["compact", "ada"]);
    let request = requests(ada.hear()).remove(0);
    let note = "a turn runs \u{1b}[2J";
    let done = json!([{"request_id":request["request_id"],"ok":false,"note":note}]);
    poll(&mut ada, false, &done);
    let said = asked.join().unwrap();
    assert_eq!(said.code, 6);
    assert!(
        said.stderr.contains("a turn runs \\u{1b}"),
        "{}",
        said.stderr
    );
}

#[tokio::test]
async fn c18_one_harness_polls_at_a_time() {
    let hive = hive(&["ada"]).await;
    let (mut first, mut second) = (hive.peer("ada"), hive.peer("ada"));
    poll(&mut first, true, &json!([]));
    ok(first.ask(&json!({"cmd":"status","id":1})));
    poll(&mut second, true, &json!([]));
    assert_eq!(code(&first.hear()), "superseded");
    let mut operator = hive.operator();
    let asked =
        operator.ask(&json!({"cmd":"control_agent","name":"ada","action":{"kind":"compact"}}));
    assert_eq!(ok(asked)["state"], "queued", "nobody waited for the answer");
    assert_eq!(requests(second.hear()).len(), 1);
    let none = second.ask(&json!({"cmd":"control"}));
    assert_eq!(
        requests(none),
        [Value::Null; 0],
        "it was sent, and not waited for"
    );
    for _ in 0..15 {
        let more = json!({"cmd":"control_agent","name":"ada","action":{"kind":"compact"}});
        ok(operator.ask(&more));
    }
    let full = json!({"cmd":"control_agent","name":"ada","action":{"kind":"compact"}});
    assert_eq!(code(&operator.ask(&full)), "limit_reached");
    let hello = second.ask(&json!({"cmd":"control","hello":true}));
    assert_eq!(requests(hello).len(), 16);
}

#[tokio::test]
async fn c18_numbers_are_not_used_again_after_a_restart() {
    let mut hive = hive(&["ada"]).await;
    let number = |hive: &TestHive| {
        let mut ada = hive.peer("ada");
        ok(ada.ask(&json!({"cmd":"control","hello":true})));
        let ask = json!({"cmd":"control_agent","name":"ada","action":{"kind":"interrupt"}});
        let asked = ok(hive.operator().ask(&ask));
        asked["request_id"].as_i64().unwrap()
    };
    let before = number(&hive);
    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    assert!(
        number(&hive) > before,
        "a harness would answer an old number from memory"
    );
}

#[tokio::test]
async fn c18_a_poll_does_not_hold_up_the_drain() {
    let mut hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    ada.say(&json!({"cmd":"control","wait_seconds":180,"hello":true}));
    ok(ada.ask(&json!({"cmd":"status","id":1})));
    let asked = cli_beside(&hive, &["compact", "ada"]);
    ok(ada.hear());
    hive.terminate().await.unwrap();
    assert_ne!(asked.join().unwrap().code, 0, "nobody answers it any more");
}
