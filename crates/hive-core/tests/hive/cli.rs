//! The command line as scripts see it: exit codes, shapes, stdin.

use serde_json::{Value, json};

use crate::peer::{BINARY, Doors, cli, eventually, hive, mail, ok, run};

#[tokio::test]
async fn c1_exit_codes() {
    let hive = hive(&["ada"]).await;
    for (args, expected) in [
        (&["list"][..], 0),
        (&["send", "nobody", "hi"], 3),
        (&["receipt", "4711"], 3),
        (&["destroy", "nobody", "--yes"], 3),
        (&["answer", "4711", "yes"], 3),
        (&["spawn", "ada"], 6),
        (&["spawn", "bob", "--parent", "nobody"], 3),
        (&["spawn", "bob", "--runtime", "nixos"], 1),
        (&["spawn", "Not-A-Name"], 2),
        (&["spawn", "operator"], 2),
        (&["spawn", "../../etc"], 2),
        (&["receipt", "abc"], 2),
        (&["frobnicate"], 2),
        (&[], 2),
    ] {
        let said = hive.cli(args);
        assert_eq!(said.code, expected, "{args:?}: {}", said.stderr);
        assert_eq!(
            said.stderr.is_empty(),
            expected == 0,
            "{args:?}: {}",
            said.stderr
        );
        assert_eq!(
            said.stdout.is_empty(),
            expected != 0,
            "{args:?}: {}",
            said.stdout
        );
    }
}

#[test]
fn c1_without_a_daemon_it_is_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["list", "status", "inbox", "logs"] {
        let said = cli(dir.path(), &[command], "");
        assert_eq!(said.code, 4, "{}", said.stderr);
        assert!(said.stderr.contains("hive-c0re serve"), "{}", said.stderr);
        let said = cli(dir.path(), &["--json", command], "");
        let error: Value = serde_json::from_str(&said.stderr).unwrap();
        assert_eq!(error["error"]["code"], "unreachable");
        assert_eq!((said.code, said.stdout.as_str()), (4, ""));
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "looking makes nothing"
    );
}

#[tokio::test]
async fn c1_json_shapes() {
    let hive = hive(&["ada"]).await;
    let sent = hive.cli_json(&["send", "ada", "hello"]);
    assert_eq!(sent, json!({"schema":1,"id":"1"}));
    let receipt = hive.cli_json(&["receipt", "1"]);
    let expected = json!({"schema":1,"id":"1","from":"operator","to":"ada","state":"stored",
        "deliveries":0,"turn":null,"sent_at":receipt["sent_at"],"acked_at":null});
    assert_eq!(receipt, expected);
    assert!(receipt["sent_at"].is_string());

    let list = hive.cli_json(&["list"]);
    assert_eq!(list["schema"], 1);
    let agent = &list["agents"][0];
    for field in [
        "name", "state", "status", "runtime", "engine", "model", "parent", "unread",
    ] {
        assert!(agent.get(field).is_some(), "{field}: {agent}");
    }
    assert_eq!(
        (&agent["name"], &agent["unread"]),
        (&json!("ada"), &json!(1))
    );
    let spawned = hive.cli_json(&["spawn", "bob", "--parent", "ada", "--runtime", "none"]);
    assert_eq!(
        (&spawned["schema"], &spawned["agent"]["parent"]),
        (&json!(1), &json!("ada"))
    );
    let status = hive.cli_json(&["status"]);
    assert_eq!(status["pid"], hive.pid().unwrap());
    assert_eq!(
        (&status["agents"], &status["undelivered"]),
        (&json!(2), &json!(1))
    );
    let logs = hive.cli_json(&["logs"]);
    assert_eq!(logs["schema"], 1);
    let said = hive.cli(&["--json", "send", "nobody", "x"]);
    let error: Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!(error["error"]["code"], "not_found");
    assert_eq!((said.code, said.stdout.as_str()), (3, ""));
}

#[tokio::test]
async fn c1_send_reads_stdin_as_it_is() {
    let hive = hive(&["ada"]).await;
    let body = "first line\n\n\tsecond: \"quoted\" 🐝\n";
    assert_eq!(cli(hive.root(), &["send", "ada", "-"], body).code, 0);
    assert_eq!(hive.cli(&["send", "ada", "--", "-not an option"]).code, 0);
    let got = hive.peer("ada").ask(&json!({"cmd":"recv","max":9}));
    assert_eq!(mail(&got), [(body, 1), ("-not an option", 1)]);
    assert_eq!(got["messages"][0]["from"], "operator");
    let too_long = "x".repeat(256 * 1024 + 1);
    assert_eq!(cli(hive.root(), &["send", "ada", "-"], &too_long).code, 2);
}

#[tokio::test]
async fn c1_the_inbox_is_looked_at_and_then_acked() {
    let hive = hive(&["ada"]).await;
    let ids = ["one", "two", "three"].map(|body| hive.send("ada", "operator", body).to_string());
    for _ in 0..2 {
        let inbox = hive.cli_json(&["inbox"]);
        let messages = inbox["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 3, "looking consumes nothing");
        assert_eq!(
            (&messages[0]["id"], &messages[0]["from"]),
            (&json!(ids[0]), &json!("ada"))
        );
    }
    assert_eq!(
        hive.cli_json(&["inbox", "--ack", &ids[0], &ids[2]])["acked"],
        2
    );
    assert_eq!(
        hive.cli_json(&["inbox", "--ack", &ids[0], "4711"])["acked"],
        0
    );
    let left = hive.cli_json(&["inbox"]);
    assert_eq!(left["messages"][0]["body"], "two");
    assert_eq!(left["messages"].as_array().unwrap().len(), 1);
    assert_eq!(hive.cli_json(&["receipt", &ids[0]])["state"], "acked");
    let receipt = ok(hive
        .peer("ada")
        .ask(&json!({"cmd":"receipt","message_id":3})));
    assert_eq!(receipt["state"], "acked", "its sender sees that too");
}

#[tokio::test]
async fn c1_a_terminal_is_not_steered_by_what_agents_write() {
    let hive = hive(&["ada"]).await;
    let evil = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{9b}31m\u{202e}\r\nrow";
    hive.send("ada", "operator", evil);
    ok(hive
        .peer("ada")
        .ask(&json!({"cmd":"ask","question":evil,"options":[evil]})));
    for args in [
        &["inbox"][..],
        &["history"],
        &["logs"],
        &["questions"],
        &["list"],
        &["status"],
    ] {
        let said = hive.cli(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        let steers = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!said.stdout.contains(steers), "{args:?}: {:?}", said.stdout);
        let json = hive.cli(&[&["--json"], args].concat());
        assert!(!json.stdout.contains(steers), "{args:?}: {:?}", json.stdout);
    }
    assert_eq!(
        hive.cli_json(&["inbox"])["messages"][0]["body"],
        evil,
        "and is whole in JSON"
    );
}

#[tokio::test]
async fn c12_destroy_asks_and_without_a_terminal_refuses() {
    let hive = hive(&["ada"]).await;
    let said = cli(hive.root(), &["destroy", "ada"], "y\n");
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("--yes"), "{}", said.stderr);
    ok(hive.peer("ada").ask(&json!({"cmd":"status"})));
    assert_eq!(hive.cli(&["destroy", "ada", "--yes"]).code, 0);
    assert_eq!(hive.cli_json(&["list"])["agents"], json!([]));
}

#[tokio::test]
async fn c1_logs_and_tail_show_what_happened() {
    let hive = hive(&["ada", "bob"]).await;
    hive.send("ada", "bob", "news");
    // Events are written after the answers, which do not wait for them.
    let logs = || hive.cli_json(&["logs", "bob"])["events"].clone();
    eventually("both events are there", || {
        logs().as_array().unwrap().len() >= 2
    });
    let events = logs();
    let kinds: Vec<_> = (0..2).map(|number| &events[number]["kind"]).collect();
    assert_eq!(kinds, ["agent_spawned", "message_stored"], "{events}");
    assert_eq!(events[1]["data"]["body"], "news");
    let said = hive.cli(&["logs"]);
    assert_eq!(said.code, 0);
    assert_eq!(said.stdout.lines().count(), 3, "{}", said.stdout);
}

#[tokio::test]
async fn c1_doctor_tells_a_running_hive_from_a_missing_one() {
    let hive = hive(&["ada"]).await;
    let said = hive.cli(&["--json", "doctor"]);
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let finding = |report: &Value, id: &str| {
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["id"] == id).unwrap()
    };
    for id in [
        "root-dir",
        "root-owner",
        "socket-path",
        "daemon",
        "daemon-version",
        "lock",
    ] {
        assert_eq!(finding(&report, id)["status"], "ok", "{report}");
    }
    let dir = tempfile::tempdir().unwrap();
    let said = cli(dir.path(), &["--json", "doctor"], "");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(finding(&report, "daemon")["status"], "failed");
    assert!(
        !finding(&report, "daemon")["remedy"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    assert_ne!(said.code, 0);
}

#[test]
fn c1_completions_and_man_pages_need_no_daemon() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let said = cli(dir.path(), &["completions", shell], "");
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(said.stdout.contains("redeliver"), "{shell}");
    }
    let said = cli(dir.path(), &["man"], "");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains(".TH"), "{}", said.stdout);
    let help = run(std::process::Command::new(BINARY).arg("--help"), "");
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("Exit codes"), "{}", help.stdout);
}
