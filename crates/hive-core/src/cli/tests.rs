//! Command lines, from their arguments to what they print, against a scripted daemon.

use clap::{CommandFactory, Parser};
use serde_json::{Value, json};

use super::{
    Cli, Cmd,
    testing::{FakeHost, Ran, Step, run_alone},
};

const AT: &str = "2023-11-14T22:13:20.000Z";

fn agent(name: &str) -> Value {
    json!({
        "name": name, "state": "external", "status": "", "runtime": "none", "engine": "",
        "model": "", "parent": null, "unread": 2, "inflight": 0, "port": 8100, "address": name,
        "socket": "/r/mcp.sock", "created_at": AT,
    })
}

fn message(id: i64, body: &str) -> Value {
    json!({
        "id": id, "from": "ada", "to": "operator", "body": body, "in_reply_to": null,
        "sent_at": AT, "delivery": 1,
    })
}

fn row(id: i64, body: &str) -> Value {
    json!({
        "message_id": id, "from": "ada", "to": "bob", "state": "acked", "deliveries": 1,
        "turn": "t", "sent_at": AT, "acked_at": AT, "body": body, "in_reply_to": null,
    })
}

fn page(seqs: &[i64], epoch: i64, gap: bool) -> Step {
    let event =
        |seq| json!({"seq": seq, "at": AT, "about": "ada", "kind": "k", "data": {"n": seq}});
    let events: Vec<Value> = seqs.iter().map(event).collect();
    let next = json!({"epoch": epoch, "seq": seqs.last().copied().unwrap_or(0)});
    Step::Reply(json!({"events": events, "next": next, "gap": gap}))
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn command_lines_are_read_or_refused() {
    let table: &[(&[&str], bool)] = &[
        (&["serve", "--port", "7001"], true),
        (&["up"], true),
        (&["--root", "/x", "--json", "list"], true),
        (&["list", "--json", "--root", "/x"], true),
        (
            &["spawn", "ada", "--parent", "ruth", "--runtime", "none"],
            true,
        ),
        (&["spawn", "Ada"], false),
        (&["spawn", "operator"], false),
        (&["spawn", "ada", "--runtime", "docker"], false),
        (&["send", "ada", "-"], true),
        (&["send", "ada", "--- a/file"], true),
        (
            &["send", "ada", "hi", "--key", "k", "--reply-to", "5"],
            true,
        ),
        (&["send", "--key", "k", "ada", "hi"], true),
        (&["send", "ada"], false),
        (&["inbox", "--ack", "1", "2", "-3"], true),
        (&["inbox", "--ack", "x"], false),
        (&["receipt", "5"], true),
        (&["receipt", "five"], false),
        (&["history", "--with", "ada", "--limit", "5"], true),
        (&["discard", "5", "--yes"], true),
        (&["answer", "5", "-1"], true),
        (&["tail", "ada"], true),
        (&["completions", "zsh"], true),
        (&["completions", "cmd"], false),
        (&["nonsense"], false),
        (&[], false),
    ];
    for (args, good) in table {
        let args = std::iter::once("hive-c0re").chain(args.iter().copied());
        let args: Vec<&str> = args.collect();
        assert_eq!(Cli::try_parse_from(&args).is_ok(), *good, "{args:?}");
    }
}

#[test]
fn global_options_are_found_on_either_side() {
    let cli = Cli::try_parse_from(["hive-c0re", "serve", "--root", "/x", "--json"]).unwrap();
    assert!(cli.json && cli.root.is_some_and(|root| root.as_os_str() == "/x"));
    assert!(matches!(cli.command, Cmd::Serve(_)));
}

#[tokio::test]
async fn a_daemon_that_is_not_there_is_exit_4_with_its_path() {
    let ran = run_alone(&["list"]).await;
    assert_eq!((ran.exit, ran.stdout.as_str()), (4, ""));
    assert!(
        ran.stderr
            .starts_with("error: cannot reach the daemon at /"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("host.sock"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("\nhint: is it running? start it with `hive-c0re serve`")
    );
}

#[tokio::test]
async fn errors_are_json_when_the_rest_is() {
    let refused = FakeHost::start([Step::Refuse("not_found")]);
    let ran = refused.run(&["--json", "receipt", "9"]).await;
    assert_eq!((ran.exit, ran.stdout.as_str()), (3, ""));
    assert_eq!(
        ran.stderr,
        "{\"schema\":1,\"error\":{\"code\":\"not_found\",\"message\":\"no\",\"hint\":\"try\"}}\n"
    );
}

#[tokio::test]
async fn a_lost_daemon_is_exit_4() {
    let ran = FakeHost::start([Step::HangUp])
        .run(&["send", "ada", "hi"])
        .await;
    assert_eq!(ran.exit, 4, "{}", ran.stderr);
}

#[tokio::test]
async fn list_shows_agents_or_what_to_do() {
    let ran = FakeHost::replying(json!({"agents": [agent("ada")]}))
        .run(&["list"])
        .await;
    assert!(
        ran.stdout.starts_with("NAME  STATE     RUNTIME"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("\nada   external  none "),
        "{}",
        ran.stdout
    );

    let ran = FakeHost::replying(json!({"agents": []}))
        .run(&["list"])
        .await;
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("spawn NAME"), "{}", ran.stderr);
}

#[tokio::test]
async fn spawn_says_what_was_asked() {
    let host = FakeHost::replying(agent("ada"));
    let ran = host
        .run(&[
            "--json",
            "spawn",
            "ada",
            "--parent",
            "ruth",
            "--runtime",
            "none",
        ])
        .await;
    assert_eq!(
        ran.requests,
        [json!({"cmd": "spawn", "name": "ada", "parent": "ruth", "runtime": "none"})]
    );
    assert_eq!(ran.json()["agent"]["name"], "ada");
}

#[tokio::test]
async fn send_prints_the_id() {
    let host = FakeHost::replying(json!({"message_id": 5}));
    let ran = host
        .run(&["send", "ada", "hi", "--reply-to", "3", "--key", "k"])
        .await;
    assert_eq!(ran.stdout, "5\n");
    assert_eq!(
        ran.requests,
        [json!({"cmd": "send", "to": "ada", "body": "hi", "in_reply_to": 3, "key": "k"})]
    );
    let host = FakeHost::replying(json!({"message_id": 5}));
    assert_eq!(
        host.run(&["--json", "send", "ada", "hi"]).await.stdout,
        "{\"schema\":1,\"id\":\"5\"}\n"
    );
}

#[tokio::test]
async fn destroying_and_discarding_need_a_yes() {
    for args in [["destroy", "ada"], ["discard", "5"]] {
        let ran = run_alone(&args).await;
        assert_eq!(ran.exit, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    }
    let host = FakeHost::replying(json!({"kept_messages": 2}));
    let ran = host.run(&["destroy", "ada", "--yes"]).await;
    assert_eq!(
        ran.stdout,
        "destroyed ada; 2 messages stay in its inbox, its files stay\n"
    );
    let host = FakeHost::replying(json!({"kept_messages": 0, "purged": true}));
    let ran = host.run(&["destroy", "ada", "--purge", "--yes"]).await;
    assert_eq!(ran.requests[0]["purge"], true);
    assert!(
        ran.stdout.ends_with("its files are gone\n"),
        "{}",
        ran.stdout
    );
    let host = FakeHost::replying(json!({"state": "discarded"}));
    let ran = host.run(&["discard", "5", "--yes"]).await;
    assert_eq!(ran.stdout, "message 5 is discarded\n");
}

#[tokio::test]
async fn the_inbox_is_read_to_its_end() {
    let host = FakeHost::start([
        Step::Reply(json!({"messages": [message(1, "one"), message(2, "t\u{1b}wo\nlines")]})),
        Step::Reply(json!({"messages": [message(3, &"long ".repeat(50))]})),
        Step::Reply(json!({"messages": []})),
    ]);
    let ran = host.run(&["inbox"]).await;
    let asked: Vec<&Value> = ran
        .requests
        .iter()
        .map(|request| &request["after"])
        .collect();
    assert_eq!(asked, [&Value::Null, &json!(2), &json!(3)]);
    assert!(ran.stdout.contains("t\\u{1b}wo lines"), "{}", ran.stdout);
    assert!(
        ran.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("inbox --ack"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_limited_inbox_says_where_to_go_on() {
    let two = json!({"messages": [message(1, "one"), message(2, "two")]});
    let ran = FakeHost::replying(two)
        .run(&["--json", "inbox", "--limit", "1"])
        .await;
    let inbox = ran.json();
    assert_eq!(inbox["next"], "1");
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn acking_the_inbox_names_the_messages() {
    let ran = FakeHost::replying(json!({"acked": 1}))
        .run(&["inbox", "--ack", "1", "2"])
        .await;
    assert_eq!(ran.requests, [json!({"cmd": "ack_inbox", "ids": [1, 2]})]);
    assert_eq!(ran.stdout, "1 of 2 marked as dealt with\n");
}

#[tokio::test]
async fn a_receipt_has_the_whole_body_for_people() {
    let body = format!("{}\nend", "long ".repeat(50));
    let host = FakeHost::start([
        Step::Reply(row(5, "")),
        Step::Reply(json!({"messages": [row(5, &body)], "next": 4})),
    ]);
    let ran = host.run(&["receipt", "5"]).await;
    assert!(
        ran.stdout.ends_with(&format!("\n\n{body}\n")),
        "{}",
        ran.stdout
    );
    assert_eq!(
        ran.requests[1],
        json!({"cmd": "history", "thread": 5, "before": 6, "limit": 1})
    );
}

#[tokio::test]
async fn history_pages_until_its_limit() {
    let host = FakeHost::start([
        Step::Reply(json!({"messages": [row(9, "nine")], "next": 9})),
        Step::Reply(json!({"messages": [row(8, "eight")], "next": 8})),
    ]);
    let ran = host.run(&["--json", "history", "--limit", "2"]).await;
    let history = ran.json();
    assert_eq!(history["messages"][1]["id"], "8");
    assert_eq!(history["next"], "8");
    assert_eq!(
        ran.requests[1],
        json!({"cmd": "history", "before": 9, "limit": 1})
    );
}

#[tokio::test]
async fn a_thread_is_read_from_its_beginning() {
    let reply = json!({"messages": [row(9, "second\nline"), row(8, "first")], "next": null});
    let ran = FakeHost::replying(reply)
        .run(&["history", "--thread", "8"])
        .await;
    assert_eq!(
        ran.stdout,
        format!("#8 ada → bob  {AT}  acked\nfirst\n\n#9 ada → bob  {AT}  acked\nsecond\nline\n")
    );
}

#[tokio::test]
async fn logs_show_one_event_a_line() {
    let ran = FakeHost::start([page(&[1, 2], 1, false)])
        .run(&["logs", "ada"])
        .await;
    assert_eq!(
        ran.stdout,
        format!("{AT} ada       k {{\"n\":1}}\n{AT} ada       k {{\"n\":2}}\n")
    );
    assert_eq!(ran.requests[0]["about"], "ada");
}

async fn tail(script: impl IntoIterator<Item = Step>) -> Ran {
    FakeHost::start(script).run(&["--json", "tail"]).await
}

#[tokio::test]
async fn tail_goes_on_by_position_when_the_daemon_comes_back() {
    let ran = tail([
        page(&[1], 1, false),
        Step::HangUp,
        Step::Refuse("shutting_down"),
        page(&[2], 1, false),
        Step::Refuse("denied"),
    ])
    .await;
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let seqs: Vec<&Value> = lines.iter().map(|line| &line["event"]["seq"]).collect();
    assert_eq!(seqs, ["1", "2"]);
    for request in &ran.requests[1..4] {
        assert_eq!(request["after"], json!({"epoch": 1, "seq": 1}));
    }
    assert_eq!(ran.exit, 5);
}

#[tokio::test]
async fn tail_shows_gaps_as_gaps() {
    for (epoch, gap) in [(1, true), (2, false)] {
        let ran = tail([
            page(&[1], 1, false),
            page(&[9], epoch, gap),
            Step::Refuse("denied"),
        ])
        .await;
        let second = ran.stdout.lines().nth(1).unwrap();
        assert_eq!(
            second,
            r#"{"schema":1,"gap":{"after":{"epoch":"1","seq":"1"}}}"#
        );
        assert_eq!(ran.stdout.lines().count(), 3);
    }
}

#[tokio::test]
async fn doctor_fails_without_a_daemon_and_says_what_to_do() {
    let ran = run_alone(&["doctor"]).await;
    assert_eq!(ran.exit, 1);
    assert!(ran.stdout.contains("hive-c0re serve"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("checks failed: daemon"),
        "{}",
        ran.stderr
    );

    let ran = run_alone(&["--json", "doctor"]).await;
    let doctor = ran.json();
    assert_eq!(doctor["ok"], false);
    assert_eq!(doctor["checks"][0]["id"], "root-dir");
    assert_eq!(doctor["checks"][0]["status"], "ok");
}

#[tokio::test]
async fn completions_and_man_pages_need_no_daemon() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run_alone(&["completions", shell]).await;
        assert!(ran.stdout.contains("redeliver"), "{shell}");
    }
    let ran = run_alone(&["man"]).await;
    assert!(ran.stdout.contains(".TH hive-c0re"), "{}", ran.stdout);

    let dir = tempfile::tempdir().unwrap();
    run_alone(&["man", "--dir", dir.path().to_str().unwrap()]).await;
    for page in ["hive-c0re.1", "hive-c0re-send.1", "hive-c0re-serve.1"] {
        assert!(dir.path().join(page).exists(), "{page}");
    }
}

fn approval(id: i64, diff: &str) -> Value {
    json!({
        "approval_id": id, "kind": "apply", "agent": "ada", "requested_by": "ruth",
        "commit": "1f2e", "hash": "77aa", "diff": diff, "reason": "harder\u{1b}[2J work",
        "state": "pending", "requested_at": "2026-01-02T03:04:05.678Z",
        "expires_at": "2026-01-09T03:04:05.678Z", "decided_at": null, "carried_out_at": null,
        "note": "",
    })
}

#[tokio::test]
async fn c5_pending_shows_the_diff_and_whose_words_are_whose() {
    let host = FakeHost::replying(json!({"approvals": [approval(5, "@@ -1 +1 @@\n-a\n+b\n")]}));
    let ran = host.run(&["pending"]).await;
    assert_eq!(ran.requests, [json!({"cmd": "pending", "all": false})]);
    for part in [
        "approval 5 · a new configuration of `ada` · asked for by ruth",
        "1f2e",
        "77aa",
        "written by ruth:\n  │ harder\\u{1b}[2J work\n",
        "\n-a\n+b\n",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("approve ID"), "{}", ran.stderr);
    let host = FakeHost::replying(json!({"approvals": [approval(5, "")]}));
    let ran = host.run(&["--json", "pending"]).await;
    let row = &ran.json()["approvals"][0];
    assert_eq!((&row["id"], &row["hash"]), (&json!("5"), &json!("77aa")));
    let host = FakeHost::replying(json!({"approvals": [approval(5, "")]}));
    assert_eq!(host.run(&["pending", "6"]).await.exit, 3);
    let host = FakeHost::replying(json!({"approvals": []}));
    assert_eq!(host.run(&["pending"]).await.exit, 0);
}

#[tokio::test]
async fn c5_decisions_carry_hash_and_note_and_have_their_exit_codes() {
    let decided =
        |state: &str| json!({"approval_id": 5, "agent": "ada", "state": state, "note": "n"});
    let host = FakeHost::replying(decided("approved"));
    let ran = host
        .run(&["approve", "5", "--hash", "77aa", "--note", "go"])
        .await;
    assert_eq!(
        ran.requests,
        [json!({"cmd": "approve", "approval_id": 5, "hash": "77aa", "note": "go"})]
    );
    assert_eq!(
        (ran.exit, ran.stdout.as_str()),
        (0, "approval 5 is approved: n\n")
    );
    let host = FakeHost::replying(decided("failed"));
    let ran = host.run(&["approve", "5"]).await;
    assert_eq!(ran.requests, [json!({"cmd": "approve", "approval_id": 5})]);
    assert_eq!(ran.exit, 1);
    assert!(
        ran.stderr.contains("could not be carried out"),
        "{}",
        ran.stderr
    );
    let host = FakeHost::start([Step::Refuse("conflict")]);
    assert_eq!(host.run(&["approve", "5", "--hash", "0"]).await.exit, 6);
    let host = FakeHost::replying(decided("denied"));
    let ran = host.run(&["--json", "deny", "5", "--note", "no"]).await;
    assert_eq!(
        ran.requests,
        [json!({"cmd": "deny", "approval_id": 5, "note": "no"})]
    );
    assert_eq!(ran.json()["state"], "denied");
    let requested =
        json!({"approval_id": 4, "hash": "9b", "expires_at": "2026-01-09T03:04:05.678Z"});
    let host = FakeHost::replying(requested);
    let ran = host.run(&["request-spawn", "bob", "--model", "opus"]).await;
    assert_eq!(
        ran.requests,
        [json!({"cmd": "request_spawn", "name": "bob", "model": "opus"})]
    );
    assert_eq!(ran.stdout, "4\n");
}
