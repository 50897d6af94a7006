//! Schedules, and the order in which things fire (M12).

use std::time::{SystemTime, UNIX_EPOCH};

use hive_testkit::hive::TestHive;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};

use crate::peer::{Doors, code, eventually, hive, hive_with, mail, ok};

fn unix_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

async fn hive_of_schedulers(agents: &[&str]) -> TestHive {
    let hive = hive(agents).await;
    for agent in agents {
        hive.cli_json(&["permissions", agent, "--grant", "scheduling"]);
    }
    hive
}

/// Moves the next firing of every schedule while the daemon is away, as if it had been for long.
fn set_back(hive: &TestHive, seconds: i64) {
    let conn = rusqlite::Connection::open(hive.root().join("state/hive.db")).unwrap();
    // The daemon misses what it wrote to the log when that is gone.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    let moved = conn
        .execute(
            "UPDATE schedules SET next_at = next_at - ?1",
            [seconds * 1_000],
        )
        .unwrap();
    assert!(moved > 0, "there is nothing to move");
}

#[tokio::test]
async fn m12_a_schedule_fires_once_across_kills_and_in_order_with_reminders() {
    let mut hive = hive_of_schedulers(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let now = unix_time();
    for request in [
        json!({"cmd":"schedule","prompt":"third","at_unix_timestamp":now + 3}),
        json!({"cmd":"remind","message":"second","at_unix_timestamp":now + 2}),
        json!({"cmd":"schedule","prompt":"first","at_unix_timestamp":now + 1}),
        json!({"cmd":"remind","message":"fourth","at_unix_timestamp":now + 4}),
    ] {
        ok(ada.ask(&request));
    }
    drop(ada);
    hive.kill().await.unwrap();
    eventually("all of them are due", || unix_time() > now + 4);
    hive.restart().await.unwrap();
    let mut ada = hive.peer("ada");
    let mut got = Vec::new();
    for _ in 0..4 {
        let reply = ada.ask(&json!({"cmd":"recv","wait_seconds":20}));
        let message = &reply["messages"][0];
        got.push((message["from"].clone(), mail(&reply)[0].0.to_owned()));
    }
    let bodies: Vec<&str> = got.iter().map(|(_, body)| body.as_str()).collect();
    assert_eq!(bodies, ["first", "second", "third", "fourth"]);
    assert_eq!(got[0].0, "schedule-2");
    hive.restart().await.unwrap();
    let status = ok(hive.peer("ada").ask(&json!({"cmd":"status"})));
    assert_eq!(status["unread"], 0, "each fires once");
    assert_eq!(hive.cli_json(&["schedules"])["schedules"], json!([]));
}

#[tokio::test]
async fn m12_what_was_missed_is_one_prompt_that_says_so_and_nothing_piles_up() {
    let mut hive = hive_of_schedulers(&["ada"]).await;
    let schedule = json!({"cmd":"schedule","prompt":"look","cron":"* * * * *"});
    ok(hive.peer("ada").ask(&schedule));
    hive.kill().await.unwrap();
    set_back(&hive, 10 * 60);
    hive.restart().await.unwrap();
    let receive = json!({"cmd":"recv","wait_seconds":20,"turn":"t1"});
    let got = hive.peer("ada").ask(&receive);
    let body = mail(&got)[0].0.to_owned();
    assert!(body.starts_with("look\n"), "{body}");
    let counted = ["stands for 10", "stands for 11", "stands for 12"];
    assert!(counted.iter().any(|words| body.contains(words)), "{body}");
    // The prompt is held by a turn that has not ended: what falls due is left out and counted.
    hive.kill().await.unwrap();
    set_back(&hive, 5 * 60);
    hive.restart().await.unwrap();
    let left_out = || {
        let rows = hive.cli_json(&["schedules"]);
        let next = rows["schedules"][0]["next_at"].as_str().unwrap().to_owned();
        next > hive_wire::Timestamp::now().to_string()
    };
    eventually("it has moved on", left_out);
    let mut ada = hive.peer("ada");
    let status = ok(ada.ask(&json!({"cmd":"status"})));
    assert_eq!(
        (&status["unread"], &status["inflight"]),
        (&json!(0), &json!(1))
    );
    let id = &got["messages"][0]["id"];
    ok(ada.ask(&json!({"cmd":"ack_turn","turn":"t1","ids":[id]})));
    drop(ada);
    hive.kill().await.unwrap();
    set_back(&hive, 60);
    hive.restart().await.unwrap();
    let got = hive
        .peer("ada")
        .ask(&json!({"cmd":"recv","wait_seconds":20}));
    let body = mail(&got)[0].0.to_owned();
    let counted = ["stands for 6", "stands for 7", "stands for 8"];
    assert!(counted.iter().any(|words| body.contains(words)), "{body}");
}

#[tokio::test]
async fn m12_schedules_are_bounded_and_ones_own() {
    let hive = hive_with("[limits]\nschedules_per_agent = 2\n", &["ada", "bob"]).await;
    for agent in ["ada", "bob"] {
        hive.cli_json(&["permissions", agent, "--grant", "scheduling"]);
    }
    let schedule = json!({"cmd":"schedule","prompt":"look","cron":"0 9 * * *",
        "time_zone":"Europe/Vienna"});
    let mut ada = hive.peer("ada");
    let id = ok(ada.ask(&schedule))["schedule_id"].clone();
    ok(ada.ask(&schedule));
    assert_eq!(code(&ada.ask(&schedule)), "limit_reached");
    let listed = ok(ada.ask(&json!({"cmd":"list_schedules"})));
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2);
    assert_eq!(listed["schedules"][0]["time_zone"], "Europe/Vienna");
    let mut bob = hive.peer("bob");
    let none = ok(bob.ask(&json!({"cmd":"list_schedules"})));
    assert_eq!(none["schedules"], json!([]));
    let cancel = json!({"cmd":"cancel_schedule","schedule_id":id});
    assert_eq!(code(&bob.ask(&cancel)), "not_found", "another's");
    ok(ada.ask(&cancel));
    assert_eq!(code(&ada.ask(&cancel)), "not_found");
    for (bad, says) in [
        (
            json!({"cmd":"schedule","prompt":"x","cron":"* * * * * *"}),
            "minute hour",
        ),
        (
            json!({"cmd":"schedule","prompt":"x","cron":"0 0 30 2 *"}),
            "never fires",
        ),
        (json!({"cmd":"schedule","prompt":"x"}), "one of"),
        (
            json!({"cmd":"schedule","prompt":"x","cron":"0 9 * * *","time_zone":"../etc"}),
            "time zone",
        ),
    ] {
        let reply = ada.ask(&bad);
        assert_eq!(code(&reply), "bad_request", "{bad}");
        let said = reply["error"]["message"].as_str().unwrap();
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test]
async fn m12_the_operator_sees_and_cancels_any_schedule() {
    let hive = hive_of_schedulers(&["ada", "bob"]).await;
    let schedule = |prompt: &str| json!({"cmd":"schedule","prompt":prompt,"delay_seconds":900});
    ok(hive.peer("ada").ask(&schedule("a")));
    ok(hive.peer("bob").ask(&schedule("b")));
    let all = hive.cli_json(&["schedules"]);
    assert_eq!(all["schedules"].as_array().unwrap().len(), 2);
    let bobs = hive.cli_json(&["schedules", "bob"]);
    let row = &bobs["schedules"][0];
    assert_eq!(
        (&row["agent"], &row["prompt"]),
        (&json!("bob"), &json!("b"))
    );
    let id = row["id"].as_str().unwrap();
    assert_eq!(hive.cli(&["schedules", "--cancel", id]).code, 0);
    assert_eq!(hive.cli(&["schedules", "--cancel", id]).code, 3);
    assert_eq!(hive.cli(&["schedules", "zoe"]).code, 3);
    let told = hive.peer("bob").ask(&json!({"cmd":"recv"}));
    let event: Value = serde_json::from_str(mail(&told)[0].0).unwrap();
    assert_eq!(event["event"], "schedule_cancelled");
    assert_eq!(hive.cli_json(&["schedules", "bob"])["schedules"], json!([]));
    assert_eq!(hive.cli(&["schedules", "ada"]).code, 0);
}
