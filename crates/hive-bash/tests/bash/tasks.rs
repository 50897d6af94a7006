//! What a command sees and what is seen of it.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn b1_a_command_that_ends_in_time_is_answered_whole() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let cmd = "echo out; echo err >&2; exit 3";
    let (task, said) = bash
        .ok("run", json!({"cmd": cmd, "wait_seconds": 30}))
        .await;
    assert_eq!(task["id"], 1);
    assert_eq!(task["status"], "done");
    assert_eq!(task["exit_code"], 3);
    assert_eq!(task["stdout"], "out\n");
    assert_eq!(task["stderr"], "err\n");
    assert_eq!(task["stdout_bytes"], 4);
    assert!(said.starts_with("task 1: done, exit code 3"), "{said}");
    assert!(
        said.contains("--- stdout\nout\n--- stderr\nerr\n"),
        "{said}"
    );
    let tasks = bench.harness().join("bash-tasks");
    assert_eq!(fs::read(tasks.join("1.out")).unwrap(), b"out\n");
    assert_eq!(fs::read(tasks.join("1.err")).unwrap(), b"err\n");
    // The answer is known to have been written: there is nothing to wake for.
    bench.all_is_seen().await;
}

#[tokio::test]
async fn b1_b2_a_longer_one_goes_on_and_can_be_looked_at() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let cmd = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last";
    let (task, said) = bash.ok("run", json!({"cmd": cmd, "wait_seconds": 0})).await;
    let started = "task started: id=1; it goes on in the background";
    assert!(said.starts_with(started), "{said}");
    assert!(task["summary"].as_str().unwrap().starts_with(started));
    assert_eq!(task["exit_code"], json!(null));
    let (task, _) = bash.ok("status", json!({"id": 1, "wait_seconds": 1})).await;
    assert_eq!(task["status"], "running");
    assert_eq!(task["stdout"], "first\n");
    assert!(task["pid"].is_i64());
    let open = bench.loose_ends();
    assert_eq!(open[0].0, "bash-task-1");
    assert!(open[0].1.starts_with("running: echo first"), "{open:?}");

    fs::write(bench.state().join("go"), "").unwrap();
    // The word that interfaces use elsewhere is understood as well.
    let args = json!({"task_id": 1, "wait_seconds": 30});
    let (task, _) = bash.ok("status", args).await;
    assert_eq!(task["status"], "done");
    assert_eq!(task["stdout"], "first\nlast\n");
    assert!(task["duration_ms"].as_u64().unwrap() > 0);
    bench.all_is_seen().await;
}

#[tokio::test]
async fn b3_a_task_outlives_the_bridge_that_started_it() {
    let bench = Bench::alone().await;
    let mut first = bench.bridge().await;
    let cmd = "while [ ! -e go ]; do sleep 0.05; done; echo survived";
    first
        .ok("run", json!({"cmd": cmd, "wait_seconds": 0}))
        .await;
    first.process.kill().await.unwrap();

    fs::write(bench.state().join("go"), "").unwrap();
    let mut second = bench.bridge().await;
    let task = second.ended(&json!(1)).await;
    assert_eq!(task["stdout"], "survived\n");
}

#[tokio::test]
async fn a_command_has_no_secrets_no_input_and_no_terminal() {
    let env = [
        ("ANTHROPIC_API_KEY", "secret-1"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "secret-2"),
        ("HIVE_LABEL", "ada"),
        ("JAVA_HOME", "/java"),
        ("HIVE_BASH_KEEP_ENV", "JAVA_HOME"),
    ];
    let bench = Bench::start("/nowhere".into(), &env).await;
    let mut bash = bench.bridge().await;
    let task = bash
        .finish("env; cat; test -t 0 || echo no terminal; pwd")
        .await;
    let out = task["stdout"].as_str().unwrap();
    assert_eq!(task["exit_code"], 0);
    assert!(!out.contains("secret"), "{out}");
    for line in [
        "HIVE_LABEL=ada",
        "JAVA_HOME=/java",
        "TERM=dumb",
        "no terminal",
    ] {
        assert!(out.lines().any(|seen| seen == line), "{line}: {out}");
    }
    assert!(out.ends_with("/state\n"), "{out}");
    // Not in the environment of the process that stands over it either.
    let task = bash.finish("tr '\\0' '\\n' < /proc/$PPID/environ").await;
    assert!(!task["stdout"].as_str().unwrap().contains("secret"));
}

#[tokio::test]
async fn t34_a_command_gets_the_quiet_cargo_unless_it_is_switched_off() {
    let tools = tempfile::tempdir().unwrap();
    let cargo = tools.path().join("cargo");
    fs::write(&cargo, "#!/bin/sh\necho \"cargo got: $*\"\n").unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", tools.path().display());
    // An empty switch is one that was not touched.
    for (switch, called) in [
        ("", "cargo got: build --message-format short\n"),
        ("1", "cargo got: build --message-format short\n"),
        ("0", "cargo got: build\n"),
    ] {
        let env = [
            ("PATH", path.as_str()),
            ("HIVE_CARGO_SHORT_MESSAGES", switch),
        ];
        let bench = Bench::start("/nowhere".into(), &env).await;
        let mut bash = bench.bridge().await;
        let task = bash.finish("cargo build").await;
        assert_eq!(task["stdout"], called, "{switch:?}: {task}");
    }
}

#[tokio::test]
async fn a_long_output_is_capped_and_says_so() {
    let env = [("HIVE_BASH_MAX_OUTPUT_BYTES", "65536")];
    let bench = Bench::start("/nowhere".into(), &env).await;
    let mut bash = bench.bridge().await;
    let task = bash
        .finish("echo begin; yes 0123456789 | head -c 20000000; echo end")
        .await;
    let out = fs::read_to_string(task["stdout_file"].as_str().unwrap()).unwrap();
    assert!(out.len() <= 65536, "{}", out.len());
    assert!(out.starts_with("begin\n"));
    assert!(out.ends_with("end\n"));
    assert!(out.contains(" bytes left out here]\n"), "{out}");
    assert!(task["stdout"].as_str().unwrap().len() <= 4096);
}

#[tokio::test]
async fn what_is_no_text_is_shown_all_the_same() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let task = bash.finish("printf '\\377\\000\\033[2Jx'").await;
    assert_eq!(task["stdout_bytes"], 7);
    assert!(task["stdout"].as_str().unwrap().ends_with('x'));
}

#[tokio::test]
async fn commands_that_cannot_be_are_refused_with_a_way_out() {
    let env = [("HIVE_BASH_MAX_TASKS", "2")];
    let bench = Bench::start("/nowhere".into(), &env).await;
    let mut bash = bench.bridge().await;
    let long = format!("echo {}", "x".repeat(200_000));
    for (args, words) in [
        (json!({"cmd": "  "}), "empty"),
        (json!({"cmd": "a\0b"}), "NUL"),
        (json!({"cmd": long}), "script file"),
        (json!({"cmd": "true", "timeout_secs": 0}), "at least 1"),
        (json!({"command": "true"}), "unknown field `command`"),
    ] {
        let said = bash.failure("run", args).await;
        assert!(said.contains(words), "{said}");
    }
    let said = bash.failure("status", json!({"id": 99})).await;
    assert!(said.contains("no task 99"), "{said}");

    for _ in 0..2 {
        bash.ok("run", json!({"cmd": "sleep 1000", "wait_seconds": 0}))
            .await;
    }
    let said = bash.failure("run", json!({"cmd": "true"})).await;
    assert!(
        said.contains("2 tasks run already: 1 (sleep 1000)"),
        "{said}"
    );
    // The way out that is named works.
    let pid = loop {
        let (task, _) = bash.ok("status", json!({"id": 1})).await;
        // It may still wait for its turn to start.
        if let Some(pid) = task["pid"].as_i64() {
            break rustix::process::Pid::from_raw(i32::try_from(pid).unwrap());
        }
    };
    rustix::process::kill_process_group(pid.unwrap(), rustix::process::Signal::TERM).unwrap();
    let task = bash.ended(&json!(1)).await;
    assert_eq!(task["status"], "done");
    assert_eq!(task["exit_code"], json!(null));
    bash.ok("run", json!({"cmd": "true"})).await;
}

#[tokio::test]
async fn a_state_directory_that_is_gone_is_said() {
    let bench = Bench::alone().await;
    fs::remove_dir(bench.state()).unwrap();
    let mut bash = bench.bridge().await;
    let (task, said) = bash
        .ok("run", json!({"cmd": "true", "wait_seconds": 30}))
        .await;
    assert_eq!(task["status"], "done");
    assert_eq!(task["exit_code"], json!(null));
    assert!(said.contains("cannot start the shell in"), "{said}");
}
