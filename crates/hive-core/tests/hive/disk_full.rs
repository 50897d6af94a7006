//! A disk that gets full under a running hive: work is refused with a clear word, what was
//! acknowledged is kept, and with room again everything goes on.
//!
//! Each test runs once more as a child of itself, in a mount namespace where its directory for
//! temporary files is a small disk. So the hive lies on that, and its clients reach it as ever.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::{
    daemon::refused,
    http::{address, get, status},
    peer::{Doors, Peer, code, eventually, hive_with, ok},
    web::Page,
};

/// Tells a child that it is one.
const CHILD: &str = "HIVE_ON_SMALL_DISK";
/// Everything may wait, and nobody is too fast.
const LIMITS: &str = "[limits]\ninbox_depth = 100000\nsends_per_minute = 0\n";
const AGENTS: [&str; 5] = ["ada", "bob", "carl", "dora", "eve"];
const SENDERS: [&str; 4] = ["ada", "carl", "dora", "eve"];
/// Nearly as much as a message may hold.
const LARGE: usize = 200_000;
const SMALL: usize = 100;

/// Whether this is the child on the small disk. In the parent: runs this very test there.
///
/// Without the right to mount something, the test is skipped and says so.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn on_a_small_disk(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let dir = tempfile::tempdir().unwrap();
    let line = "mount -t tmpfs -o size=160m tmpfs \"$1\" || exit 77; exec \"$0\" --exact \"$2\" --nocapture";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", line])
        .arg(std::env::current_exe().unwrap())
        .arg(dir.path())
        .arg(format!("disk_full::{test}"))
        .env("TMPDIR", dir.path())
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || !said.contains("running 1 test") {
        eprintln!("SKIPPED {test}: no right to mount a disk: {said}");
        return false;
    }
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "the child ran nothing: {said}");
    false
}

/// Takes all the room that is left, until it is removed.
struct Ballast(PathBuf);

impl Ballast {
    fn load(hive: &TestHive) -> Self {
        let path = hive.root().join("ballast");
        let mut file = File::create(&path).unwrap();
        for bytes in [64 * 1024, 4096, 1] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
        Self(path)
    }

    fn drop_it(self) {
        fs::remove_file(self.0).unwrap();
    }
}

/// What senders heard.
#[derive(Debug, Default)]
struct Heard {
    /// By id.
    kept: BTreeMap<i64, String>,
    refused: Vec<String>,
}

impl Heard {
    /// All senders write to bob until every one of them was refused.
    fn send_until_refused(&mut self, hive: &TestHive, round: &str, size: usize) {
        let send = |from: &str| {
            let socket = hive.agent_socket(from);
            let bodies = format!("{round} of {from}: ");
            thread::spawn(move || send_until_refused(&socket, &bodies, size))
        };
        for sender in SENDERS.map(send) {
            let heard = sender.join().unwrap();
            self.kept.extend(heard.kept);
            self.refused.extend(heard.refused);
        }
    }
}

fn send_until_refused(socket: &Path, bodies: &str, size: usize) -> Heard {
    let mut heard = Heard::default();
    let mut peer = Peer::connect(socket);
    for number in 0..5_000 {
        let body = format!("{bodies}{number} {}", "x".repeat(size));
        let reply = peer.ask(&json!({"cmd":"send","to":"bob","body":body}));
        if reply["ok"] == true {
            let id = reply["message_id"].as_i64().unwrap();
            assert_eq!(heard.kept.insert(id, body), None, "an id was given twice");
        } else {
            is_clear(&reply);
            heard.refused.push(body);
            return heard;
        }
    }
    panic!("nothing was refused");
}

/// A refusal says what happened, and what to do about it.
fn is_clear(reply: &Value) {
    assert_eq!(code(reply), "disk_full");
    for (part, words) in [("message", "the disk is full"), ("hint", "free some space")] {
        let text = reply["error"][part].as_str().unwrap_or_default();
        assert!(text.contains(words), "{reply}");
    }
}

/// Everything that waits for bob, once he has dealt with it.
fn drain(hive: &TestHive) -> BTreeMap<i64, String> {
    let mut bob = hive.peer("bob");
    let mut all = BTreeMap::new();
    for turn in 0.. {
        let turn = format!("drain-{turn}");
        let got = ok(bob.ask(&json!({"cmd":"recv","turn":turn,"max":100})));
        let got = bodies(&got);
        if got.is_empty() {
            break;
        }
        let ids: Vec<_> = got.keys().collect();
        let acked = ok(bob.ask(&json!({"cmd":"ack_turn","turn":turn,"ids":ids})));
        assert_eq!(acked["acked"], ids.len());
        let is_ordered = all.keys().last() < got.keys().next();
        assert!(is_ordered, "something came twice, or late");
        all.extend(got);
    }
    all
}

/// The messages of a receive, by id.
fn bodies(reply: &Value) -> BTreeMap<i64, String> {
    let mut bodies = BTreeMap::new();
    for message in reply["messages"].as_array().unwrap() {
        let id = message["id"].as_i64().unwrap();
        let body = message["body"].as_str().unwrap().to_owned();
        assert_eq!(bodies.insert(id, body), None, "{id} came twice");
    }
    bodies
}

/// Asserts that these are the same messages; says which are not, without their long bodies.
fn assert_same(found: &BTreeMap<i64, String>, expected: &BTreeMap<i64, String>) {
    let beyond = |these: &BTreeMap<i64, String>, those: &BTreeMap<i64, String>| {
        let only = these
            .iter()
            .filter(|(id, body)| those.get(id) != Some(body));
        only.map(|(id, _)| *id).collect::<Vec<_>>()
    };
    assert_eq!(beyond(expected, found), [0; 0], "missing");
    assert_eq!(beyond(found, expected), [0; 0], "surplus");
}

#[tokio::test]
async fn c3_a_full_disk_refuses_work_and_loses_none() {
    if !on_a_small_disk("c3_a_full_disk_refuses_work_and_loses_none") {
        return;
    }
    let mut hive = hive_with(LIMITS, &AGENTS).await;
    let mut heard = Heard::default();
    let first = hive.send("ada", "bob", "before");
    heard.kept.insert(first, "before".to_owned());
    let mut bob = hive.peer("bob");
    let receive = json!({"cmd":"recv","turn":"t1","req":"r1"});
    assert_eq!(bodies(&ok(bob.ask(&receive))), heard.kept);
    let process = hive.pid();

    let ballast = Ballast::load(&hive);
    heard.send_until_refused(&hive, "large", LARGE);
    heard.send_until_refused(&hive, "small", SMALL);
    assert!(heard.kept.len() > 100, "{}", heard.kept.len());
    assert_eq!(heard.refused.len(), 2 * SENDERS.len());

    // What only reads goes on, and knows all that was acknowledged.
    let status = ok(bob.ask(&json!({"cmd":"status"})));
    let counted = (status["unread"].as_u64(), status["inflight"].as_u64());
    assert_eq!(counted, (Some(heard.kept.len() as u64 - 1), Some(1)));
    assert_eq!(bodies(&ok(bob.ask(&receive)))[&first], "before");
    // There may be room for a few leases, or none.
    let more = bob.ask(&json!({"cmd":"recv","turn":"t1","req":"r2","max":3}));
    if more["ok"] == true {
        assert!(
            bodies(&more)
                .iter()
                .all(|(id, body)| heard.kept[id] == *body)
        );
    } else {
        is_clear(&more);
    }
    the_operator_is_told(&hive);

    ballast.drop_it();
    eventually("the hive is ready again", || {
        probe(&hive, "/readyz").0 == 200
    });
    for sender in SENDERS {
        let id = hive.send(sender, "bob", "after");
        heard.kept.insert(id, "after".to_owned());
    }
    assert_eq!(hive.pid(), process, "without a restart");
    let ack = json!({"cmd":"ack_turn","turn":"t1","ids":[first]});
    assert_eq!(ok(bob.ask(&ack))["acked"], 1);
    heard.kept.remove(&first);
    hive.restart().await.unwrap();
    assert_same(&drain(&hive), &heard.kept);
}

/// The status of an open path, and what was answered.
fn probe(hive: &TestHive, path: &str) -> (u16, String) {
    let address = address(hive);
    let answer = get(&address, path, &[&format!("Host: {address}")]);
    (status(&answer), answer)
}

/// On a full disk: the command line, the page and `doctor` say so, and the daemon is well.
fn the_operator_is_told(hive: &TestHive) {
    let said = hive.cli(&["send", "bob", &"x".repeat(60_000)]);
    assert_eq!(said.code, 1);
    let words = ["error: the disk is full", "hint: free some space"];
    assert!(
        words.iter().all(|word| said.stderr.contains(word)),
        "{}",
        said.stderr
    );
    let page = Page::dashboard(hive);
    let body = json!({"to":"bob","body":"x".repeat(60_000)});
    let (status_code, reply) = page.post("/api/send", &body);
    assert_eq!(status_code, 507, "{reply}");

    assert_eq!(probe(hive, "/healthz").0, 200);
    let (ready, why_not) = probe(hive, "/readyz");
    assert_eq!(ready, 503);
    assert!(why_not.ends_with("the disk is full\n"), "{why_not}");
    assert_eq!(
        hive.cli_json(&["list"])["agents"].as_array().unwrap().len(),
        AGENTS.len()
    );
    let said = hive.cli(&["--json", "doctor"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = |id: &str| checks.iter().find(|check| check["id"] == id).unwrap();
    assert_eq!(check("daemon")["status"], "ok", "{report}");
    let space = check("disk-space");
    assert_eq!(
        (&space["status"], &space["measured"]),
        (&json!("failed"), &json!("0 MiB free"))
    );
    assert!(
        space["remedy"]
            .as_str()
            .unwrap()
            .starts_with("free some space")
    );
}

#[tokio::test]
async fn c3_a_hive_that_was_killed_on_a_full_disk_starts_once_there_is_room() {
    if !on_a_small_disk("c3_a_hive_that_was_killed_on_a_full_disk_starts_once_there_is_room") {
        return;
    }
    let mut hive = hive_with(LIMITS, &AGENTS).await;
    let ballast = Ballast::load(&hive);
    let mut heard = Heard::default();
    heard.send_until_refused(&hive, "large", LARGE);
    hive.kill().await.unwrap();

    let said = refused(hive.root());
    for words in ["the disk is full", "free some space"] {
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
    ballast.drop_it();
    hive.restart().await.unwrap();
    assert_same(&drain(&hive), &heard.kept);
}
