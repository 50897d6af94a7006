//! The walk of the README: two agents by hand, with nothing but the command line and socat, and
//! the plug pulled in the middle. Once as it is written there, and once further.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    peer::{Doors, hive, left_out_without, ok, run},
    up::Place,
};

/// Whether socat is here; if it is not, that is told.
fn have_socat() -> bool {
    let tried = Command::new("socat").arg("-V").output();
    tried
        .inspect_err(|error| left_out_without("socat", error))
        .is_ok()
}

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
    if !have_socat() {
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

/// The commands under a heading of the README.
fn readme(heading: &str) -> Vec<String> {
    let text = include_str!("../../../../README.md");
    let (_, section) = text.split_once(&format!("\n{heading}\n")).unwrap();
    let block = section.split("\n```\n").nth(1).unwrap();
    let lines = block.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// A shell that a reader types into, line by line.
struct Shell {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Shell {
    fn start() -> Self {
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc", "-O", "expand_aliases"])
            .env_remove("BASH_ENV")
            .env_remove("HIVE_ROOT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut shell = Self { child, said };
        assert_eq!(shell.run("exec 2>&1"), "");
        shell
    }

    /// Types a line; what is said until the next prompt. It must go well.
    fn run(&mut self, line: &str) -> String {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}\necho \"--- $?\"").unwrap();
        let mut text = String::new();
        loop {
            let start = text.len();
            let read = self.said.read_line(&mut text).unwrap();
            assert!(read > 0, "{line}: the shell ended: {text}");
            if let Some(code) = text[start..].strip_prefix("--- ") {
                assert_eq!(code, "0\n", "{line}: {text}");
                text.truncate(start);
                return text;
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// What a reader of the README expects to see after a line of its walk.
fn is_as_told(line: &str, said: &str) {
    let reply = || ok(serde_json::from_str(said).unwrap());
    if line.starts_with("hive spawn") {
        let name = line.split(' ').nth(2).unwrap();
        let socket = format!("/run/agents/{name}/mcp.sock");
        assert!(said.contains(&socket), "{line}: {said}");
    } else if line.contains("\"send\"") {
        assert_eq!(reply()["message_id"], 1);
    } else if line.contains("\"recv\"") {
        let messages = &reply()["messages"];
        assert_eq!(messages.as_array().unwrap().len(), 1, "{said}");
        let (from, body) = (&messages[0]["from"], &messages[0]["body"]);
        assert_eq!((from, body), (&json!("ada"), &json!("are you there?")));
        assert_eq!(
            (&messages[0]["id"], &messages[0]["delivery"]),
            (&json!(1), &json!(1))
        );
    } else if line.contains("\"ack_turn\"") {
        assert_eq!(reply()["acked"], 1);
    } else if line.starts_with("hive receipt") {
        let words: Vec<_> = said.split_whitespace().collect();
        assert!(
            words.windows(2).any(|pair| pair == ["state", "acked"]),
            "{said}"
        );
        assert!(said.ends_with("\nare you there?\n"), "{said}");
    } else {
        assert_eq!(said, "", "{line}");
    }
}

/// What becomes of the hive meanwhile.
enum Plug {
    Stays,
    /// It is killed and started again, after every line.
    IsPulled,
}

/// Walks it on a hive of its own.
fn walk(lines: &[String], plug: &Plug) {
    let place = Place::shipped();
    let command = place.command();
    let binary = command.get_program().to_str().unwrap();
    let root = place.root();
    let path = std::env::var("PATH").unwrap();
    let mut up = place.up_with(&path);
    let mut shell = Shell::start();
    for line in lines {
        let here = line
            .replace("target/release/hive-c0re", binary)
            .replace("/tmp/hive", root.to_str().unwrap());
        is_as_told(line, &shell.run(&here));
        if let Plug::IsPulled = plug {
            up.end(Signal::KILL);
            up = place.up_with(&path);
        }
    }
    drop(shell);
    assert_eq!(up.end(Signal::INT), Some(0));
}

#[test]
fn c1_c3_the_walk_of_the_readme_goes_as_it_is_written() {
    if !have_socat() {
        return;
    }
    let lines = readme("## Be an agent, by hand");
    let verbs = [
        "alias ",
        "hive spawn",
        "send",
        "recv",
        "ack_turn",
        "hive receipt",
    ];
    for verb in verbs {
        assert!(
            lines.iter().any(|line| line.contains(verb)),
            "{verb}: {lines:?}"
        );
    }
    walk(&lines, &Plug::Stays);
    // It says: "kill the daemon with `kill -9` anywhere in between".
    walk(&lines, &Plug::IsPulled);
}
