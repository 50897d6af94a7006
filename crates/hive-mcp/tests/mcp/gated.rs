//! Tools that the operator gives to an agent or not: shown, hidden and refused as the host says.

use hive_mcp::Options;
use hive_testkit::hive::TestHive;
use hive_wire::{
    grants::{Capability, Group},
    host::{SetPermissions, Spawn},
};
use serde_json::{Value, json};

use crate::client::{Mcp, hive, options};

/// A call of each tool that an agent does not have by itself, and what it needs.
fn gated() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("list_agents", json!({}), "lifecycle"),
        ("kill", json!({"name": "kid"}), "lifecycle"),
        ("start", json!({"name": "kid"}), "lifecycle"),
        ("restart", json!({"name": "kid"}), "lifecycle"),
        (
            "request_spawn",
            json!({"name": "tester", "reason": "x"}),
            "approvals",
        ),
        (
            "request_apply_commit",
            json!({"agent": "kid", "commit_ref": "main", "reason": "x"}),
            "approvals",
        ),
        (
            "schedule",
            json!({"prompt": "x", "delay_seconds": 60}),
            "scheduling",
        ),
        ("list_schedules", json!({}), "scheduling"),
        ("cancel_schedule", json!({"schedule_id": 1}), "scheduling"),
        ("get_logs", json!({}), "diagnostics"),
        ("get_host_journal", json!({}), "read_host_journal"),
    ]
}

/// A hive in which `kid` is a child of `ada`.
async fn family() -> TestHive {
    let hive = hive().await;
    let kid = Spawn {
        parent: Some("ada".parse().unwrap()),
        ..Spawn::elsewhere("kid".parse().unwrap())
    };
    hive.host_client().call(&kid).await.unwrap();
    hive
}

async fn set(hive: &TestHive, change: SetPermissions) {
    hive.host_client().call(&change).await.unwrap();
}

fn nothing_yet() -> SetPermissions {
    SetPermissions {
        name: "ada".parse().unwrap(),
        reset: false,
        grant: Vec::new(),
        revoke: Vec::new(),
        grant_capabilities: Vec::new(),
        revoke_capabilities: Vec::new(),
        recipients: None,
    }
}

/// Gives `ada` everything.
async fn grant_all(hive: &TestHive) {
    let all = SetPermissions {
        grant: Group::ALL.to_vec(),
        grant_capabilities: vec![Capability::ReadHostJournal],
        ..nothing_yet()
    };
    set(hive, all).await;
}

async fn names(mcp: &mut Mcp) -> Vec<String> {
    let listed = mcp.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn m1_c14_what_is_shown_follows_the_operator_at_once() {
    let hive = family().await;
    let mut ada = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let shown = names(&mut ada).await;
    for (tool, args, need) in gated() {
        assert!(!shown.iter().any(|name| name == tool), "{tool} is shown");
        let said = ada.failure(tool, args).await;
        assert!(said.contains(need), "{tool}: {said}");
    }
    grant_all(&hive).await;
    let shown = names(&mut ada).await;
    for (tool, _, _) in gated() {
        assert!(shown.iter().any(|name| name == tool), "{tool} is hidden");
    }
    let none = SetPermissions {
        revoke: Group::ALL.to_vec(),
        ..nothing_yet()
    };
    set(&hive, none).await;
    assert_eq!(names(&mut ada).await, ["get_host_journal"]);
    // These are part of every harness's life to the host, so that the server looks itself.
    for (tool, args, need) in [
        ("recv", json!({}), "messaging"),
        ("get_receipt", json!({"message_id": 1}), "messaging"),
        ("request_next_turn", json!({}), "inbox"),
    ] {
        let said = ada.failure(tool, args).await;
        assert!(said.contains(need), "{tool}: {said}");
    }
}

#[tokio::test]
async fn m1_the_groups_of_a_turn_hide_what_the_host_would_do() {
    let hive = family().await;
    grant_all(&hive).await;
    let turn = Options {
        groups: Some([Group::Meta].into_iter().collect()),
        ..options(&hive)
    };
    let mut ada = Mcp::shaken(&turn, "2025-11-25").await;
    assert_eq!(
        names(&mut ada).await,
        [
            "set_status",
            "get_agent_meta",
            "list_peers",
            "get_host_journal"
        ]
    );
    let said = ada.failure("list_agents", json!({})).await;
    assert!(said.contains("lifecycle"), "{said}");
}

#[tokio::test]
async fn m12_schedules_are_made_listed_and_deleted_once() {
    let hive = family().await;
    grant_all(&hive).await;
    let mut ada = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let daily = json!({
        "prompt": "read the logs", "cron": "30 7 * * 1-5", "time_zone": "Europe/Vienna",
        "key": "daily-logs",
    });
    let first = ada.ok("schedule", daily.clone()).await;
    assert_eq!(
        ada.ok("schedule", daily).await,
        first,
        "one key, one schedule"
    );
    let once = json!({"prompt": "once", "delay_seconds": 3600});
    let once = ada.ok("schedule", once).await;
    let listed = ada.ok("list_schedules", json!({})).await;
    let listed = listed["schedules"].as_array().unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let row = listed
        .iter()
        .find(|row| row["cron"] == "30 7 * * 1-5")
        .unwrap();
    assert_eq!(row["schedule_id"], first["schedule_id"]);
    assert_eq!(row["next_at"], first["next_at"]);
    assert_eq!(row["time_zone"], "Europe/Vienna");
    for id in [&first["schedule_id"], &once["schedule_id"]] {
        ada.ok("cancel_schedule", json!({"schedule_id": id})).await;
    }
    assert_eq!(
        ada.ok("list_schedules", json!({})).await["schedules"],
        json!([])
    );
    for (args, words) in [
        (json!({"prompt": "x"}), "cron"),
        (
            json!({"prompt": "x", "delay_seconds": 60, "cron": "* * * * *"}),
            "one of them",
        ),
        (json!({"prompt": "x", "cron": "every day"}), "cron"),
        (
            json!({"prompt": "x", "cron": "0 0 * * *", "time_zone": "Mars/Base"}),
            "Mars/Base",
        ),
    ] {
        let said = ada.failure("schedule", args).await;
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn m11_m12_children_and_logs() {
    let hive = family().await;
    grant_all(&hive).await;
    let mut ada = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let agents = ada.ok("list_agents", json!({})).await;
    assert_eq!(agents["agents"].as_array().unwrap().len(), 1, "{agents}");
    assert_eq!(agents["agents"][0]["name"], "kid");
    assert_eq!(agents["agents"][0]["state"], "external");
    for (args, words) in [
        (json!({"name": "bob"}), "bob"),
        (json!({"name": "kid"}), "elsewhere"),
        (json!({"name": "No Name"}), "name"),
    ] {
        let said = ada.failure("kill", args).await;
        assert!(said.contains(words), "{said}");
    }
    let journal = ada.ok("get_host_journal", json!({"lines": 5})).await;
    assert!(
        !journal["journal"].as_str().unwrap().is_empty(),
        "{journal}"
    );
    let said = ada.failure("get_logs", json!({"agent": "bob"})).await;
    assert!(said.contains("bob"), "{said}");
}

#[tokio::test]
async fn a_key_has_one_effect_whatever_the_tool() {
    let hive = family().await;
    grant_all(&hive).await;
    let mut ada = Mcp::shaken(&options(&hive), "2025-11-25").await;
    for (tool, args) in [
        ("ask", json!({"question": "Friday?", "key": "k-ask"})),
        (
            "remind",
            json!({"message": "x", "delay_seconds": 3600, "key": "k-remind"}),
        ),
        ("set_status", json!({"text": "busy", "key": "k-status"})),
    ] {
        let first = ada.ok(tool, args.clone()).await;
        assert_eq!(ada.ok(tool, args).await, first, "{tool}");
    }
    let open = ada.ok("get_loose_ends", json!({})).await;
    assert_eq!(open["loose_ends"].as_array().unwrap().len(), 2, "{open}");
    let reminder = &open["loose_ends"][1]["reminder_id"];
    let cancel = json!({"kind": "reminder", "reminder_id": reminder, "key": "k-cancel"});
    for _ in 0..2 {
        ada.ok("cancel_loose_end", cancel.clone()).await;
    }
    // Without a key the second time says that it is gone.
    let again = json!({"kind": "reminder", "reminder_id": reminder});
    ada.failure("cancel_loose_end", again).await;
}
