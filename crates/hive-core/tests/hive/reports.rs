//! What agents report of themselves: status, statistics, state and events.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::peer::{BINARY, Doors, Peer, code, eventually, hive, hive_with, ok};

fn note(seq: u64, text: &str) -> Value {
    json!({"seq":seq,"at":"2026-01-02T03:04:05Z","kind":"note","data":{"text":text}})
}

fn post(peer: &mut Peer, epoch: &str, events: &[Value]) -> u64 {
    let posted = peer.ask(&json!({"cmd":"post_events","epoch":epoch,"events":events}));
    ok(posted)["next_seq"].as_u64().unwrap()
}

/// The events of a kind about an agent.
fn events(hive: &TestHive, about: &str, kind: &str) -> Vec<Value> {
    let page = hive
        .operator()
        .ask(&json!({"cmd":"events","about":about,"limit":1000}));
    let events = ok(page)["events"].as_array().unwrap().clone();
    let of_kind = events.into_iter().filter(|event| event["kind"] == kind);
    of_kind.map(|event| event["data"].clone()).collect()
}

fn texts(events: &[Value]) -> Vec<&str> {
    let texts = events.iter().map(|data| data["text"].as_str().unwrap());
    texts.collect()
}

fn state_of(hive: &TestHive, agent: &str) -> String {
    let list = hive.cli_json(&["list"]);
    let agents = list["agents"].as_array().unwrap();
    let row = agents.iter().find(|row| row["name"] == agent).unwrap();
    row["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn m10_a_status_is_seen_by_all_and_survives_the_daemon() {
    let mut hive = hive_with("name = \"pr1ma\"\n", &["ada", "bob"]).await;
    let mut ada = hive.peer("ada");
    ok(ada.ask(&json!({"cmd":"set_status","text":" reading the log "})));
    let bad_status = [
        json!("two\nlines"),
        json!("\u{1b}[2J"),
        json!("x".repeat(201)),
        json!(7),
        Value::Null,
    ];
    for bad in bad_status {
        let refused = ada.ask(&json!({"cmd":"set_status","text":bad}));
        assert_eq!(code(&refused), "bad_request", "{bad}");
    }
    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    let meta = ok(hive
        .peer("bob")
        .ask(&json!({"cmd":"get_agent_meta","name":"ada"})));
    assert_eq!(meta["status_text"], "reading the log");
    assert!(meta["status_set_at"].is_string(), "{meta}");
    assert_eq!(
        (&meta["running"], &meta["hive_name"]),
        (&json!(false), &json!("pr1ma"))
    );
    let own = ok(hive.peer("bob").ask(&json!({"cmd":"get_agent_meta"})));
    assert_eq!(
        (&own["name"], &own["status_text"]),
        (&json!("bob"), &json!(""))
    );
    let nobody = hive
        .peer("bob")
        .ask(&json!({"cmd":"get_agent_meta","name":"zoe"}));
    assert_eq!(code(&nobody), "not_found");
    let peers = ok(hive.peer("bob").ask(&json!({"cmd":"list_peers"})));
    assert_eq!(
        peers["peers"],
        json!([{"name":"ada","running":false,"status_text":"reading the log"}])
    );
    let list = hive.cli_json(&["list"]);
    assert_eq!(list["agents"][0]["status"], "reading the log");
    ok(hive.peer("ada").ask(&json!({"cmd":"set_status","text":""})));
    let list = hive.cli_json(&["list"]);
    assert_eq!(list["agents"][0]["status"], "");
}

#[tokio::test]
async fn t12_turn_counts_are_kept_once_and_cut_to_size() {
    let hive = hive(&["ada", "bob"]).await;
    let mut ada = hive.peer("ada");
    let mut counts = json!({"cmd":"post_turn_counts","turn":"t-1","kind":"mail",
        "started_at":"2026-01-02T03:04:05Z","duration_ms":1500,"input_tokens":10,
        "output_tokens":20,"cost_micro_usd":4711,"outcome":"ok","messages":[1,2],
        "tools":[{"name":"Read","count":3}]});
    ok(ada.ask(&counts));
    ok(ada.ask(&counts));
    for (field, hostile) in [
        ("input_tokens", json!(u64::MAX)),
        ("cost_micro_usd", json!(u64::MAX)),
        ("outcome", json!("x".repeat(100_000))),
        ("note", json!("y".repeat(100_000))),
        ("messages", json!(vec![7; 20_000])),
    ] {
        counts[field] = hostile;
    }
    counts["turn"] = json!("t-2");
    ok(ada.ask(&counts));
    for bad in [
        json!({"cmd":"post_turn_counts"}),
        json!({"cmd":"post_turn_counts","turn":"t","kind":"nap","started_at":"2026-01-02T03:04:05Z","duration_ms":1,"outcome":"ok"}),
        json!({"cmd":"post_turn_counts","turn":"t","kind":"mail","started_at":"soon","duration_ms":1,"outcome":"ok"}),
        json!({"cmd":"post_turn_counts","turn":"t","kind":"mail","started_at":"2026-01-02T03:04:05Z","duration_ms":-1,"outcome":"ok"}),
    ] {
        assert_eq!(code(&ada.ask(&bad)), "bad_request", "{bad}");
    }
    let page = hive.cli_json(&["turns", "ada", "--limit", "1"]);
    let newest = &page["turns"][0];
    assert_eq!(newest["turn"], "t-2");
    assert!(newest["outcome"].as_str().unwrap().len() < 500);
    assert!(newest["messages"].as_array().unwrap().len() < 1_000);
    let next = page["next"].as_str().unwrap();
    let page = hive.cli_json(&["turns", "ada", "--before", next]);
    assert_eq!(page["turns"].as_array().unwrap().len(), 1);
    assert_eq!(
        page["turns"][0]["tools"],
        json!([{"name":"Read","count":3}])
    );
    assert_eq!(page["next"], Value::Null);
    let stats = hive.cli_json(&["stats"]);
    let today = &stats["totals"][0];
    assert_eq!(
        (&today["agent"], &today["turns"]),
        (&json!("ada"), &json!(2))
    );
    assert_eq!(today["failed"], 1, "a word that means nothing is a failure");
    assert_eq!(today["output_tokens"], 40);
    assert_eq!(hive.cli_json(&["stats", "bob"])["totals"], json!([]));
    for (args, expected) in [
        (&["turns", "zoe"][..], 3),
        (&["stats", "zoe"], 3),
        (&["turns", "ada", "--limit", "0"], 2),
        (&["stats", "--days", "401"], 2),
    ] {
        assert_eq!(hive.cli(args).code, expected, "{args:?}");
    }
    let shown = hive.cli(&["turns", "ada"]).stdout;
    assert!(shown.contains("$0.0047"), "{shown}");
}

#[tokio::test]
async fn t28_the_state_follows_the_harness() {
    let hive = hive(&["ada"]).await;
    assert_eq!(state_of(&hive, "ada"), "external");
    let mut ada = hive.peer("ada");
    let state = json!({"cmd":"post_state","turn_state":"thinking","since":"2026-01-02T03:04:05Z",
        "model":"haiku","context_tokens":100,"window":1000,"engine":"claude","current_tool":"Read"});
    ok(ada.ask(&state));
    assert_eq!(
        state_of(&hive, "ada"),
        "external",
        "nobody takes control requests"
    );
    ok(ada.ask(&json!({"cmd":"control","hello":true})));
    assert_eq!(state_of(&hive, "ada"), "thinking");
    let snapshot = ok(hive
        .operator()
        .ask(&json!({"cmd":"agent_state","name":"ada"})));
    for (field, expected) in [
        ("connected", json!(true)),
        ("turn_state", json!("thinking")),
        ("turn_state_since", json!("2026-01-02T03:04:05.000Z")),
        ("status", json!("online")),
        ("model", json!("haiku")),
        ("context_tokens", json!(100)),
        ("context_window_tokens", json!(1000)),
        ("current_tool", json!("Read")),
        ("credential", json!("own:ada")),
        ("held_until", Value::Null),
    ] {
        assert_eq!(snapshot[field], expected, "{field}: {snapshot}");
    }
    for (change, expected) in [
        (json!({"turn_state":"compacting"}), "compacting"),
        (json!({"turn_state":"idle"}), "idle"),
        (json!({"status":"needs_login_idle"}), "needs_login"),
        (
            json!({"status":"rate_limited","resets_at":"2099-01-01T00:00:00Z"}),
            "rate_limited",
        ),
    ] {
        let mut state = state.clone();
        for (key, value) in change.as_object().unwrap() {
            state[key] = value.clone();
        }
        ok(ada.ask(&state));
        assert_eq!(state_of(&hive, "ada"), expected, "{change}");
    }
    let snapshot = ok(hive
        .operator()
        .ask(&json!({"cmd":"agent_state","name":"ada"})));
    let horizon = snapshot["resets_at"].as_str().unwrap();
    assert!(horizon < "2099", "a far reset is not believed: {horizon}");
    drop(ada);
    eventually("a harness that is gone is not shown as there", || {
        state_of(&hive, "ada") == "external"
    });
    let bad = json!({"cmd":"post_state","turn_state":"asleep","since":"2026-01-02T03:04:05Z"});
    assert_eq!(code(&hive.peer("ada").ask(&bad)), "bad_request");
}

#[tokio::test]
async fn t5_posted_events_come_once_and_in_order_across_reconnects_and_crashes() {
    let mut hive = hive(&["ada", "bob"]).await;
    let mut ada = hive.peer("ada");
    assert_eq!(post(&mut ada, "e1", &[]), 1, "nothing is known yet");
    assert_eq!(post(&mut ada, "e1", &[note(1, "one"), note(2, "two")]), 3);
    let mut again = hive.peer("ada");
    assert_eq!(
        post(&mut again, "e1", &[note(2, "forged"), note(3, "three")]),
        4
    );
    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    let mut ada = hive.peer("ada");
    let repeated = [note(1, "x"), note(2, "x"), note(3, "x"), note(4, "four")];
    assert_eq!(
        post(&mut ada, "e1", &repeated),
        5,
        "known after a crash of the host"
    );
    assert_eq!(post(&mut ada, "e1", &[note(9, "nine")]), 10);
    assert_eq!(post(&mut ada, "e2", &[note(1, "new life")]), 2);
    assert_eq!(
        post(&mut ada, "e1", &[note(9, "x")]),
        10,
        "the old life is not taken twice"
    );
    let notes = events(&hive, "ada", "note");
    assert_eq!(
        texts(&notes),
        ["one", "two", "three", "four", "nine", "new life"]
    );
    assert_eq!(events(&hive, "ada", "gap"), [json!({"dropped":4})]);
    assert_eq!(events(&hive, "bob", "note"), [Value::Null; 0]);
}

#[tokio::test]
async fn t5_hostile_events_are_refused_or_made_harmless() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let ask = |peer: &mut Peer, epoch: &Value, events: Value| {
        peer.ask(&json!({"cmd":"post_events","epoch":epoch,"events":events}))
    };
    let epoch = json!("e");
    for (epoch, events) in [
        (json!(""), json!([])),
        (json!("a\nb"), json!([])),
        (json!("x".repeat(200)), json!([])),
        (epoch.clone(), json!([note(u64::MAX, "x")])),
        (
            epoch.clone(),
            json!([{"seq":-1,"at":"2026-01-02T03:04:05Z","kind":"note","data":{}}]),
        ),
        (epoch.clone(), json!([{"seq":1,"kind":"note","data":{}}])),
        (epoch.clone(), json!(vec![note(1, "x"); 1_001])),
        (epoch.clone(), json!("all")),
    ] {
        let refused = ask(&mut ada, &epoch, events);
        assert_eq!(code(&refused), "bad_request", "{epoch}");
    }
    let odd = json!([
        {"seq":1,"at":"9999-01-01T00:00:00Z","kind":"message_stored","data":{"body":"forged"}},
        {"seq":2,"at":"2026-01-02T03:04:05Z","kind":"note","data":[1,2]},
        {"seq":3,"at":"2026-01-02T03:04:05Z","kind":"stream","data":{"value":"x".repeat(300_000)}},
        {"seq":4,"at":"2026-01-02T03:04:05Z","kind":"stream","data":{"value":"y".repeat(250_000)}},
    ]);
    assert_eq!(ok(ask(&mut ada, &epoch, odd))["next_seq"], 5);
    assert_eq!(events(&hive, "ada", "message_stored"), [Value::Null; 0]);
    assert_eq!(events(&hive, "ada", "unknown"), [json!({"body":"forged"})]);
    assert_eq!(events(&hive, "ada", "note"), [json!({"value":[1,2]})]);
    let stream = events(&hive, "ada", "stream");
    assert_eq!(stream[0], json!({"cut":true,"bytes":300_012}));
    assert_eq!(
        stream[1]["value"].as_str().unwrap().len(),
        250_000,
        "within the limit"
    );
}

#[tokio::test]
async fn t5_a_flood_of_events_pushes_out_nobody_elses() {
    let hive = hive_with("[limits]\nevents_per_agent = 100\n", &["ada", "bob"]).await;
    hive.send("ada", "bob", "keep this");
    let mut bob = hive.peer("bob");
    post(&mut bob, "e", &[note(1, "bob's own")]);
    let mut ada = hive.peer("ada");
    for round in 0..20_u64 {
        let first = round * 100 + 1;
        let flood: Vec<Value> = (first..first + 100).map(|seq| note(seq, "flood")).collect();
        post(&mut ada, "e", &flood);
    }
    let kept = events(&hive, "ada", "note").len();
    assert!(kept <= 200, "{kept} events are kept");
    assert_eq!(texts(&events(&hive, "bob", "note")), ["bob's own"]);
    let stored = events(&hive, "bob", "message_stored");
    assert_eq!(stored[0]["body"], "keep this");
}

/// A `tail` that is killed at the end of the test.
struct Tail(Child);

impl Drop for Tail {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn d5_tail_shows_what_an_agent_does() {
    let hive = hive(&["ada"]).await;
    let mut child = Command::new(BINARY)
        .arg("--root")
        .arg(hive.root())
        .args(["tail", "ada", "--limit", "1"])
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _tail = Tail(child);
    assert!(lines.next().unwrap().unwrap().contains("agent_spawned"));
    let at = "2026-01-02T03:04:05Z";
    let engine =
        |seq: u64, value: Value| json!({"seq":seq,"at":at,"kind":"stream","data":{"value":value}});
    let calls = json!({"type":"assistant","message":{"content":[
        {"type":"tool_use","name":"Read","input":{"file_path":"/etc/hosts"}}]}});
    let results = json!({"type":"user","message":{"content":[
        {"type":"tool_result","content":"127.0.0.1\nlocalhost \u{1b}]52;c;x\u{7}"}]}});
    let turn = [
        json!({"seq":1,"at":at,"kind":"turn_start","data":{"turn":"t","from":"operator","body":"look","unread":2,"message_ids":[1],"delivery":1}}),
        engine(2, json!({"type":"system","subtype":"init"})),
        engine(3, calls),
        engine(4, results),
        json!({"seq":5,"at":at,"kind":"note","data":{"text":"esc \u{1b}[2J"}}),
        engine(6, json!({"type":"result","subtype":"success"})),
        json!({"seq":7,"at":at,"kind":"turn_end","data":{"turn":"t","ok":true,"outcome":"ok"}}),
        json!({"seq":8,"at":at,"kind":"turn_end","data":{"turn":"u","ok":false,"outcome":"failed","note":"exit 1"}}),
    ];
    post(&mut hive.peer("ada"), "e", &turn);
    for expected in [
        "◆ TURN ← operator · 2 unread",
        "look",
        "→ Read /etc/hosts",
        "▸ ← 2l · 127.0.0.1",
        "· esc \\u{1b}[2J",
        "✓ turn ok",
        "✗ turn fail — exit 1",
    ] {
        let line = lines.next().unwrap().unwrap();
        assert!(line.ends_with(expected), "{line:?} is not {expected:?}");
        assert!(line.contains(" ada "), "{line:?}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
}
