//! The binary.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
};

use super::client::request;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hive-rehearsal"))
        .args(args)
        .output()
        .unwrap()
}

#[tokio::test]
async fn serve_says_where_it_is_and_stops_in_order() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hive-rehearsal"))
        .args(["serve", "--port", "0", "--scenario", "echo"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
    assert_eq!(ready["url"], format!("http://127.0.0.1:{port}"));
    assert_eq!(ready["scenario"], "echo");
    assert_eq!(
        request(port, "HEAD", "/", "", "").await.unwrap().status,
        200
    );
    let killed = Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(killed.success());
    assert!(child.wait().unwrap().success(), "SIGTERM is an orderly end");
    assert!(lines.next().is_none(), "nothing else is on stdout");
}

#[test]
fn serve_refuses_what_is_not_loopback() {
    let output = run(&["serve", "--host", "0.0.0.0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("not an address of loopback")
    );
}

#[test]
fn check_names_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    std::fs::write(&file, "[[rule]]\nanswer.txt = 'x'\n").unwrap();
    let output = run(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("s.toml:2:8: unknown field `txt`"),
        "{stderr}"
    );
    assert!(stderr.contains("did you mean `text`?"), "{stderr}");
    std::fs::write(&file, "[[rule]]\nanswer.text = 'x'\n").unwrap();
    let output = run(&["check", file.to_str().unwrap()]);
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .ends_with("ok, 1 rules\n")
    );
}

#[test]
fn built_in_scenarios_are_listed_and_printed() {
    let listed = String::from_utf8(run(&["scenarios"]).stdout).unwrap();
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["tour", "echo", "weather"]);
    for name in names {
        let printed = run(&["print", name]);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mine.toml");
        std::fs::write(&file, printed.stdout).unwrap();
        assert!(
            run(&["check", file.to_str().unwrap()]).status.success(),
            "{name}"
        );
    }
    assert_eq!(run(&["print", "nothing"]).status.code(), Some(1));
}
