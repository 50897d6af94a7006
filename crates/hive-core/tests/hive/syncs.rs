//! Nothing is answered before it is on disk, as the kernel saw it: the daemon runs under strace, and
//! between a request and the write that carries its answer there has to be a sync.

use std::{collections::HashMap, fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    daemon::Daemon,
    peer::{BINARY, Peer, eventually, left_out_without, ok},
};

/// What carries requests and answers, and what brings files to the disk.
const TRACED: &str =
    "trace=read,recvfrom,write,writev,sendto,sendmsg,pwrite64,pwritev,pwritev2,fdatasync,fsync";
const REDO: &str = "/hive.db-redo>";
const WAL: &str = "/hive.db-wal>";

/// One system call, and the lines of the trace on which it began and ended.
#[derive(Debug)]
struct Call {
    name: String,
    /// Its arguments and what it returned.
    text: String,
    began: usize,
    ended: usize,
}

impl Call {
    fn is_on(&self, file: &str) -> bool {
        let first = self.text.split([',', ')']).next();
        first.is_some_and(|argument| argument.trim_end().ends_with(file))
    }

    fn succeeded(&self) -> bool {
        let returned = self.text.rsplit_once(" = ");
        returned.is_some_and(|(_, code)| code.starts_with(|digit: char| digit.is_ascii_digit()))
    }

    fn hears(&self) -> bool {
        ["read", "recvfrom"].contains(&self.name.as_str())
    }

    fn says(&self) -> bool {
        let names = ["write", "writev", "sendto", "sendmsg"];
        // What has no path is shown by its number, in brackets.
        names.contains(&self.name.as_str()) && self.is_on("]>")
    }

    fn writes(&self) -> bool {
        let names = ["write", "writev", "pwrite64", "pwritev", "pwritev2"];
        names.contains(&self.name.as_str()) && self.succeeded()
    }

    fn syncs(&self) -> bool {
        ["fdatasync", "fsync"].contains(&self.name.as_str()) && self.succeeded()
    }

    /// Whether it is a write that returns when the bytes are on disk.
    fn writes_durably(&self) -> bool {
        self.name == "pwritev2" && self.text.contains("RWF_DSYNC")
    }
}

/// The calls of a trace. One that was interrupted by another thread's takes two lines.
fn calls(trace: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut open: HashMap<&str, Call> = HashMap::new();
    // The last line may still be written on.
    let whole = trace.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for (at, line) in whole.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some((_, text)) = rest.split_once(" resumed>") {
            if let Some(mut call) = open.remove(thread) {
                call.text.push_str(text);
                call.ended = at;
                calls.push(call);
            }
            continue;
        }
        let Some((name, text)) = rest.split_once('(') else {
            continue;
        };
        let begun = text.strip_suffix("<unfinished ...>");
        let call = Call {
            name: name.to_owned(),
            text: begun.unwrap_or(text).to_owned(),
            began: at,
            ended: at,
        };
        match begun {
            Some(_) => drop(open.insert(thread, call)),
            None => calls.push(call),
        }
    }
    calls
}

/// The lines on which a request was heard and its answer began to be said.
fn span(calls: &[Call], id: &str) -> Option<(usize, usize)> {
    let of_id = || calls.iter().filter(|call| call.text.contains(id));
    let heard = of_id().find(|call| call.hears())?.ended;
    let said = of_id().find(|call| call.says() && call.began > heard)?;
    Some((heard, said.began))
}

/// Whether a request wrote to a file, and all of that was on disk before it was answered.
fn synced(calls: &[Call], id: &str, file: &str) -> bool {
    let Some((heard, said)) = span(calls, id) else {
        return false;
    };
    let between: Vec<&Call> = calls
        .iter()
        .filter(|call| call.is_on(file) && call.began > heard && call.ended < said)
        .collect();
    let mut writes = between.iter().filter(|call| call.writes()).peekable();
    let is_on_disk = |write: &&&Call| {
        let mut syncs = between.iter().filter(|call| call.syncs());
        write.writes_durably() || syncs.any(|sync| sync.began > write.ended)
    };
    writes.peek().is_some() && writes.all(|write| is_on_disk(&write))
}

/// Whether there is a strace that may trace. One that is not there fails the test where everything
/// has to be there.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args([
            "-f",
            "--seccomp-bpf",
            "-e",
            "trace=fsync",
            "-o",
            "/dev/null",
        ])
        .arg("true")
        .output();
    match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            eprintln!("SKIPPED: strace may not trace here: {}", said.trim());
        }
        Err(error) => left_out_without("strace", &error),
    }
    false
}

/// A daemon on this directory whose calls are written to `trace`.
fn traced(root: &Path, trace: &Path) -> Daemon {
    fs::write(root.join("hive.toml"), "[hive]\nroot_agent = \"\"\n").unwrap();
    let mut strace = Command::new("strace");
    // The daemon stays the child that is started and killed, and strace ends with it.
    strace
        .args(["-D", "-f", "-y", "-q", "--seccomp-bpf", "-s", "256"])
        .args(["-e", "signal=none", "-e", TRACED, "-o"])
        .arg(trace)
        .arg(BINARY);
    Daemon::start_as(root, &mut strace)
}

#[test]
fn c3_every_answer_comes_after_its_sync() {
    if !can_trace() {
        return;
    }
    let (root, traces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trace = traces.path().join("trace");
    let _daemon = traced(root.path(), &trace);
    let run = root.path().join("run");
    let spawn = json!({"cmd":"spawn","name":"ada","runtime":"none"});
    ok(Peer::connect(&run.join("host.sock")).ask(&spawn));
    let mut ada = Peer::connect(&run.join("agents/ada/mcp.sock"));
    let mut ask = |id: &str, mut request: Value| {
        request["id"] = json!(id);
        ok(ada.ask(&request))
    };
    ask("probe-send", json!({"cmd":"send","to":"ada","body":"x"}));
    let received = ask("probe-recv", json!({"cmd":"recv","turn":"t"}));
    let got = &received["messages"][0]["id"];
    let acked = ask(
        "probe-ack",
        json!({"cmd":"ack_turn","turn":"t","ids":[got]}),
    );
    assert_eq!(acked["acked"], 1, "{acked}");
    ask(
        "probe-remind",
        json!({"cmd":"remind","message":"x","delay_seconds":900}),
    );
    ask("probe-ask", json!({"cmd":"ask","question":"?"}));

    let read = || calls(&String::from_utf8_lossy(&fs::read(&trace).unwrap()));
    eventually("the last answer is in the trace", || {
        span(&read(), "probe-ask").is_some()
    });
    let calls = read();
    let expected = [
        ("probe-send", REDO),
        ("probe-recv", REDO),
        ("probe-ack", REDO),
        ("probe-remind", WAL),
        ("probe-ask", WAL),
    ];
    let too_soon: Vec<_> = expected
        .into_iter()
        .filter(|(id, file)| !synced(&calls, id, file))
        .collect();
    assert_eq!(too_soon, [("", ""); 0], "answered before it was on disk");
}

#[test]
fn a_trace_without_the_sync_is_found() {
    let heard = r#"7 recvfrom(9<socket:[1]>, "{\"id\":\"a\"}\n", 8192, 0, NULL, NULL) = 10"#;
    let said = r#"7 sendto(9<socket:[1]>, "{\"ok\":true,\"id\":\"a\"}\n", 20, 0, NULL, 0) = 20"#;
    let redo = |flags: &str, returned: &str| {
        format!(
            r#"7 pwritev2(3</h/hive.db-redo>, [{{iov_base="x", iov_len=1}}], 1, 0, {flags}) = {returned}"#
        )
    };
    let plain = r#"7 pwrite64(3</h/hive.db-redo>, "x", 1, 0) = 1"#;
    let sync = "7 fdatasync(3</h/hive.db-redo>) = 0";
    let durable = redo("RWF_DSYNC", "1");
    let traces: [(&str, bool, &[&str]); 13] = [
        ("one call for both", true, &[heard, &durable, said]),
        ("two calls", true, &[heard, plain, sync, said]),
        ("no sync", false, &[heard, plain, said]),
        (
            "no sync in the call",
            false,
            &[heard, &redo("0", "1"), said],
        ),
        ("nothing at all", false, &[heard, said]),
        ("no answer", false, &[heard, &durable]),
        ("synced before", false, &[&durable, heard, said]),
        ("synced after", false, &[heard, plain, said, sync]),
        ("synced too soon", false, &[heard, sync, plain, said]),
        ("synced without a write", false, &[heard, sync, said]),
        (
            "it failed",
            false,
            &[
                heard,
                &redo("RWF_DSYNC", "-1 EIO (Input/output error)"),
                said,
            ],
        ),
        (
            "another file",
            false,
            &[heard, plain, "7 fdatasync(4</h/hive.db-wal>) = 0", said],
        ),
        (
            "not done by then",
            false,
            &[
                heard,
                plain,
                "8 fdatasync(3</h/hive.db-redo> <unfinished ...>",
                said,
                "8 <... fdatasync resumed>) = 0",
            ],
        ),
    ];
    for (what, expected, lines) in traces {
        let trace = lines.join("\n") + "\n";
        assert_eq!(synced(&calls(&trace), r#"\"a\""#, REDO), expected, "{what}");
    }
    let split = [
        r"7 recvfrom(9<socket:[1]>,  <unfinished ...>",
        r#"7 <... recvfrom resumed>"{\"id\":\"a\"}\n", 8192, 0, NULL, NULL) = 10"#,
        plain,
        "7 fdatasync(3</h/hive.db-redo> <unfinished ...>",
        "8 +++ exited with 0 +++",
        "7 <... fdatasync resumed>) = 0",
        said,
        "",
    ];
    assert!(synced(&calls(&split.join("\n")), r#"\"a\""#, REDO));
}
