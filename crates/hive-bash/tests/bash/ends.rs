//! How tasks end that do not end by themselves, and what is left of them: nothing.

use serde_json::{Value, json};

use crate::bench::{Bench, gone};

#[tokio::test]
async fn b4_a_time_out_ends_the_whole_group_and_whoever_left_it() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    // One in a session of its own, one that is an orphan as well, one that does not listen.
    let cmd = "setsid sh -c 'echo $$ > session; exec sleep 1000' & \
               (setsid sh -c 'echo $$ > orphan; exec sleep 1000' &) ; \
               sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 1; done' & \
               wait";
    let args = json!({"cmd": cmd, "timeout_secs": 1, "wait_seconds": 0});
    let (task, _) = bash.ok("run", args).await;
    let (session, orphan, deaf) = (
        bench.pid_in("session").await,
        bench.pid_in("orphan").await,
        bench.pid_in("deaf").await,
    );
    let task = bash.ended(&task["id"]).await;
    assert_eq!(task["status"], "timed_out", "{task}");
    for pid in [session, orphan, deaf] {
        gone(pid).await;
    }
    let (_, said) = bash.ok("status", json!({"id": 1})).await;
    assert!(
        said.contains("timed out") && said.contains("after 1 s"),
        "{said}"
    );
}

#[tokio::test]
async fn a_time_out_leaves_time_to_clean_up() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let cmd = "trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done";
    let args = json!({"cmd": cmd, "timeout_secs": 1, "wait_seconds": 30});
    let (task, _) = bash.ok("run", args).await;
    assert_eq!(task["status"], "timed_out");
    assert_eq!(task["exit_code"], 7);
    assert_eq!(task["stdout"], "bye\n");
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let cmd = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; while :; do sleep 1; done' & \
               while [ ! -s daemon ]; do sleep 0.05; done; echo started";
    let task = bash.finish(cmd).await;
    assert_eq!(task["status"], "done");
    assert_eq!(task["exit_code"], 0);
    assert_eq!(task["stdout"], "started\n");
    gone(bench.pid_in("daemon").await).await;
}

#[tokio::test]
async fn a_task_that_kills_its_guard_is_found_by_the_daemon() {
    let bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let cmd = "echo $$ > shell; setsid sh -c 'echo $$ > other; exec sleep 1000' & \
               while [ ! -s other ]; do sleep 0.05; done; kill -9 $PPID; sleep 1000";
    let task = bash.finish(cmd).await;
    assert_eq!(task["status"], "interrupted", "{task}");
    let summary = task["summary"].as_str().unwrap();
    assert!(summary.contains("stood over it was killed"), "{summary}");
    gone(bench.pid_in("shell").await).await;
    gone(bench.pid_in("other").await).await;
    // And the daemon goes on.
    assert_eq!(bash.finish("echo alive").await["stdout"], "alive\n");
}

#[tokio::test]
async fn b4_a_killed_daemon_takes_its_tasks_along_and_the_next_one_knows() {
    let mut bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    let cmd = "echo begun; setsid sh -c 'echo $$ > detached; exec sleep 1000' & \
               echo $$ > shell; wait";
    bash.ok("run", json!({"cmd": cmd, "wait_seconds": 0})).await;
    let (shell, detached) = (bench.pid_in("shell").await, bench.pid_in("detached").await);
    // What is not in the file yet would go with the daemon.
    let args = json!({"id": 1});
    while bash.ok("status", args.clone()).await.0["stdout"] != "begun\n" {}
    bench.kill().await;
    gone(shell).await;
    gone(detached).await;

    bench.launch().await;
    let mut bash = bench.bridge().await;
    let (task, said) = bash.ok("status", json!({"id": 1})).await;
    assert_eq!(task["status"], "interrupted");
    assert_eq!(task["stdout"], "begun\n");
    assert!(said.contains("restarted"), "{said}");
    // The next task has the next number.
    assert_eq!(bash.finish("true").await["id"], 2);
}

#[tokio::test]
async fn b4_a_daemon_that_is_told_to_stop_ends_its_tasks_first() {
    let mut bench = Bench::alone().await;
    let mut bash = bench.bridge().await;
    bash.ok(
        "run",
        json!({"cmd": "echo $$ > shell; sleep 1000", "wait_seconds": 0}),
    )
    .await;
    let shell = bench.pid_in("shell").await;
    bench.stop().await;
    gone(shell).await;
    assert!(!bench.socket().exists());
    let record = bench.harness().join("bash-tasks/1.json");
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["state"], "interrupted");
    let said = bash.failure("run", json!({"cmd": "true"})).await;
    assert!(said.contains("does not run"), "{said}");
}
