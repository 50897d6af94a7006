//! Telling the agent: once when it is heard, again until it is.

use hive_testkit::hive::TestHive;
use hive_wire::{
    MessageId,
    agent::{AckTurn, GetLooseEnds, LooseEnd, RequeueInflight, RequeueReason, Status},
    grants::Group,
    host::SetPermissions,
};
use serde_json::json;

use crate::bench::{Bench, PATIENCE, hive, news};

async fn ack(hive: &TestHive, turn: &str, ids: &[MessageId]) {
    let ack = AckTurn {
        turn: turn.parse().unwrap(),
        ids: ids.to_vec(),
    };
    hive.agent_client("ada").call(&ack).await.unwrap();
}

async fn give_back(hive: &TestHive, turn: &str) {
    let requeue = RequeueInflight {
        turn: turn.parse().unwrap(),
        reason: RequeueReason::Failed,
    };
    hive.agent_client("ada").call(&requeue).await.unwrap();
}

#[tokio::test]
async fn b1_the_end_of_a_long_task_wakes_and_that_of_a_short_one_does_not() {
    let hive = hive().await;
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    bash.finish("echo short").await;
    bench.all_is_seen().await;
    let cmd = "echo working; sleep 0.2; echo failed >&2; exit 4";
    bash.ok("run", json!({"cmd": cmd, "wait_seconds": 0})).await;

    let woken = news(&hive, "t1").await;
    assert_eq!(woken.from.as_str(), "bash-task-2");
    assert!(woken.id.is_transient());
    for words in [
        "Task 2 done, exit code 4",
        "$ echo working",
        "failed",
        "2.err",
    ] {
        assert!(woken.body.contains(words), "{words}: {}", woken.body);
    }
    // Until the turn has ended well, it is open.
    assert_eq!(bench.loose_ends()[0].0, "bash-task-2");
    ack(&hive, "t1", &[woken.id]).await;
    bench.all_is_seen().await;
    let status = hive.agent_client("ada").call(&Status {}).await.unwrap();
    assert_eq!(status.unread, 0);
}

#[tokio::test]
async fn b1_a_task_that_timed_out_wakes_too() {
    let hive = hive().await;
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    let cmd = "echo so far; sleep 1000";
    let args = json!({"cmd": cmd, "timeout_secs": 1, "wait_seconds": 0});
    bash.ok("run", args).await;
    let woken = news(&hive, "t1").await;
    assert_eq!(woken.from.as_str(), "bash-task-1");
    for words in ["Task 1 timed out", "after 1 s", "so far"] {
        assert!(woken.body.contains(words), "{words}: {}", woken.body);
    }
    ack(&hive, "t1", &[woken.id]).await;
    bench.all_is_seen().await;
}

/// What the daemon publishes is where the host looks, and in the form that it reads.
#[tokio::test]
async fn b4_b6_a_running_task_is_among_the_loose_ends_that_the_host_tells() {
    let hive = hive().await;
    let harness = hive.root().join("state/agents/ada/harness");
    std::fs::create_dir_all(&harness).unwrap();
    let harness = harness.to_str().unwrap();
    let bench = Bench::start(hive.agent_socket("ada"), &[("HIVE_HARNESS_DIR", harness)]).await;
    let mut bash = bench.bridge().await;
    let cmd = "echo $$ > shell; while [ ! -e go ]; do sleep 0.05; done";
    bash.ok("run", json!({"cmd": cmd, "wait_seconds": 0})).await;
    bench.pid_in("shell").await;
    // The shell may be ahead of the word that it has started.
    tokio::time::timeout(PATIENCE, async {
        while bash.ok("status", json!({"id": 1})).await.0["status"] != "running" {}
    })
    .await
    .expect("it runs");
    let open = loose_ends(&hive).await;
    let [LooseEnd::Task { label, text, .. }] = &open[..] else {
        panic!("{open:?}");
    };
    assert_eq!(label, "bash-task-1");
    assert!(text.starts_with("running: echo $$ > shell"), "{text}");

    // Once the agent has seen how it ended, it is closed.
    std::fs::write(bench.state().join("go"), "").unwrap();
    bash.ended(&json!(1)).await;
    tokio::time::timeout(PATIENCE, async {
        while !loose_ends(&hive).await.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("what was seen is closed");
}

async fn loose_ends(hive: &TestHive) -> Vec<LooseEnd> {
    let asked = GetLooseEnds { agent: None };
    let open = hive.agent_client("ada").call(&asked).await.unwrap();
    open.loose_ends
}

#[tokio::test]
async fn b5_an_agent_without_any_group_is_told_all_the_same() {
    let hive = hive().await;
    let none = SetPermissions {
        name: "ada".parse().unwrap(),
        reset: false,
        grant: Vec::new(),
        revoke: Group::ALL.to_vec(),
        grant_capabilities: Vec::new(),
        revoke_capabilities: Vec::new(),
        recipients: None,
    };
    hive.host_client().call(&none).await.unwrap();
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    bash.ok("run", json!({"cmd": "true", "wait_seconds": 0}))
        .await;
    let woken = news(&hive, "t1").await;
    assert_eq!(woken.from.as_str(), "bash-task-1");
    ack(&hive, "t1", &[woken.id]).await;
    bench.all_is_seen().await;
}

#[tokio::test]
async fn b4_a_wake_whose_turn_failed_comes_again() {
    let hive = hive().await;
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    bash.ok("run", json!({"cmd": "true", "wait_seconds": 0}))
        .await;
    for turn in ["t1", "t2"] {
        let woken = news(&hive, turn).await;
        assert_eq!(woken.from.as_str(), "bash-task-1");
        give_back(&hive, turn).await;
    }
    let woken = news(&hive, "t3").await;
    ack(&hive, "t3", &[woken.id]).await;
    bench.all_is_seen().await;
}

#[tokio::test]
async fn b4_a_wake_that_the_host_lost_comes_again() {
    let mut hive = hive().await;
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    bash.ok("run", json!({"cmd": "true", "wait_seconds": 0}))
        .await;
    // It waits in the host's memory, and goes with it.
    while hive
        .agent_client("ada")
        .call(&Status {})
        .await
        .unwrap()
        .unread
        == 0
    {
        tokio::task::yield_now().await;
    }
    hive.restart().await.unwrap();
    let woken = news(&hive, "t1").await;
    assert_eq!(woken.from.as_str(), "bash-task-1");
    ack(&hive, "t1", &[woken.id]).await;
    bench.all_is_seen().await;
}

#[tokio::test]
async fn b4_an_interrupted_task_wakes_although_the_host_was_away() {
    let mut hive = hive().await;
    let mut bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    let cmd = "echo $$ > shell; sleep 1000";
    bash.ok("run", json!({"cmd": cmd, "wait_seconds": 0})).await;
    bench.pid_in("shell").await;
    hive.kill().await.unwrap();
    bench.kill().await;
    bench.launch().await;
    hive.restart().await.unwrap();
    let woken = news(&hive, "t1").await;
    assert_eq!(woken.from.as_str(), "bash-task-1");
    assert!(woken.body.contains("interrupted"), "{}", woken.body);
}

#[tokio::test]
async fn b6_a_task_that_the_agent_looked_at_is_no_news() {
    let hive = hive().await;
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    bash.ok("run", json!({"cmd": "true", "wait_seconds": 0}))
        .await;
    bash.ended(&json!(1)).await;
    bench.all_is_seen().await;
    // A restart does not bring it back either.
    let mut bench = bench;
    bench.kill().await;
    bench.launch().await;
    assert_eq!(bench.loose_ends(), []);
}

#[tokio::test]
async fn a_run_that_was_cancelled_goes_on_and_wakes() {
    let hive = hive().await;
    let bench = Bench::of(&hive).await;
    let mut bash = bench.bridge().await;
    let args = json!({"cmd": "echo $$ > shell; sleep 0.5; echo over", "wait_seconds": 30});
    let params = json!({"name": "run", "arguments": args});
    let id = bash.request("tools/call", params).await;
    bench.pid_in("shell").await;
    let gone =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    bash.say(&gone).await;
    let woken = news(&hive, "t1").await;
    assert!(woken.body.contains("over"), "{}", woken.body);
}
