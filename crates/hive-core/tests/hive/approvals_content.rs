//! What requests ask for: kept while one needs it, and decided in time or not at all.

use std::fs;

use hive_wire::Timestamp;
use serde_json::{Value, json};

use crate::{
    approvals::{Stage, id},
    peer::{Doors, code, eventually, ok},
};

impl Stage {
    /// How many contents of requests are kept.
    fn kept(&self) -> usize {
        let requests = self.crew.hive.root().join("state/requests");
        fs::read_dir(requests).unwrap().count()
    }
}

#[tokio::test]
async fn c5_two_who_ask_for_the_same_need_the_same_content_each() {
    let stage = Stage::new("").await;
    let granted = ["permissions", "ada", "--grant", "approvals"];
    assert_eq!(stage.crew.hive.cli(&granted).code, 0);
    stage.commit("ada", "model = \"sonnet\"\n");
    let between = id(&stage.request("ada", "main"));
    let commit = stage.commit("ada", "model = \"opus\"\n");
    let asked = json!({"cmd":"request_apply_commit","agent":"ada","commit_ref":commit});
    let mine = stage.request("ada", &commit);
    let theirs = stage.crew.hive.peer("ada").ask(&asked);
    assert_ne!(id(&mine), id(&theirs));
    assert_eq!(mine["hash"], theirs["hash"]);
    // What both were shown is not what is applied any more: each is shown anew.
    assert_eq!(stage.crew.hive.cli(&["approve", &between]).code, 0);
    for request in [&mine, &theirs] {
        let hash = request["hash"].as_str().unwrap();
        let stale = stage
            .crew
            .hive
            .cli(&["approve", &id(request), "--hash", hash]);
        assert_eq!(stale.code, 6, "{}", stale.stderr);
        assert!(stale.stderr.contains("has changed"), "{}", stale.stderr);
    }
    // One of them is refused, and the other can be approved all the same.
    assert_eq!(stage.crew.hive.cli(&["deny", &id(&mine)]).code, 0);
    let approved = stage.crew.hive.cli(&["approve", &id(&theirs)]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    assert!(stage.applied("ada").contains("opus"));
    assert_eq!(stage.kept(), 0);
}

#[tokio::test]
async fn c5_nothing_is_kept_of_requests_that_were_refused_taken_back_or_expired() {
    let stage = Stage::new("[limits]\napprovals_per_agent = 1\n").await;
    let spawn = |name: &str| stage.ruth(&json!({"cmd":"request_spawn","name":name}));
    let first = id(&spawn("cid"));
    assert_eq!(stage.kept(), 1);
    assert_eq!(code(&spawn("dan")), "limit_reached");
    assert_eq!(stage.kept(), 1);
    let first: i64 = first.parse().unwrap();
    let back = json!({"cmd":"cancel_loose_end","kind":"approval","approval_id":first});
    ok(stage.ruth(&back));
    ok(spawn("eve"));
    assert_eq!(stage.kept(), 1, "the one that was taken back is gone");
}

#[tokio::test]
async fn c5_what_the_root_agent_put_in_the_way_fails_a_spawn_and_says_so() {
    let stage = Stage::new("").await;
    let in_the_way = stage.crew.hive.root().join("state/proposed/cid");
    fs::write(&in_the_way, "mine").unwrap();
    let spawn = || stage.ruth(&json!({"cmd":"request_spawn","name":"cid"}));
    let refused = id(&spawn());
    let said = stage.crew.hive.cli(&["approve", &refused]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let settled = stage.approval(&refused);
    assert_eq!(settled["state"], "failed");
    let note = settled["note"].as_str().unwrap();
    assert!(note.contains("in the way"), "{note}");
    let applied = stage.crew.hive.root().join("state/applied/cid");
    assert!(!applied.exists(), "nothing of it was made");
    assert_eq!(fs::read_to_string(&in_the_way).unwrap(), "mine");
}

#[tokio::test]
async fn c5_a_decision_at_the_last_moment_is_made_whole_or_not_at_all() {
    let stage = Stage::new("[limits]\napproval_seconds = 1\n").await;
    for round in 0..6_i64 {
        let text = format!("hive_name = \"round-{round}\"\n");
        stage.commit("ada", &text);
        let request = stage.request("ada", "main");
        let expires: Timestamp = serde_json::from_value(request["expires_at"].clone()).unwrap();
        // The command takes some of the time itself: earlier and later about the last moment.
        eventually("it is almost over", || {
            Timestamp::now().millis() >= expires.millis() - 100 * (5 - round)
        });
        let said = stage.crew.hive.cli(&["approve", &id(&request)]);
        eventually("it is settled", || {
            stage.approval(&id(&request))["state"] != "pending"
        });
        let settled = stage.approval(&id(&request));
        let is_applied = stage.applied("ada") == text;
        match said.code {
            0 => assert!(settled["state"] == "approved" && is_applied, "{settled}"),
            6 => assert!(settled["state"] == "expired" && !is_applied, "{settled}"),
            code => panic!("{code}: {}", said.stderr),
        }
        assert!(
            settled["state"] == "expired" || settled["carried_out_at"] != Value::Null,
            "{settled}"
        );
    }
}

#[tokio::test]
async fn c5_an_agent_that_is_destroyed_while_it_is_tried_settles_its_approval() {
    let mut stage = Stage::new("[agents]\ntrial_secs = 5\n").await;
    stage.disconnect();
    stage.commit("ada", "model = \"opus\"\n");
    let request = id(&stage.request("ada", "main"));
    let root = stage.crew.hive.root().to_owned();
    let approve = std::thread::spawn({
        let request = request.clone();
        move || crate::peer::cli(&root, &["approve", &request], "")
    });
    let file = stage.crew.hive.root();
    let file = file.join("state/applied/ada/config/agent.toml");
    eventually("it is applied", || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains("opus"))
    });
    let destroyed = stage.crew.hive.cli(&["destroy", "ada", "--yes"]);
    assert_eq!(destroyed.code, 0, "{}", destroyed.stderr);
    let said = approve.join().unwrap();
    assert_eq!(said.code, 1, "{}", said.stderr);
    let settled = stage.approval(&request);
    assert_eq!(settled["state"], "failed", "{settled}");
    assert_ne!(
        settled["carried_out_at"],
        Value::Null,
        "it is not tried again"
    );
}
