//! The warm engine: one `claude` for many turns, dropped on any doubt.

use crate::stage::Stage;

#[tokio::test]
async fn a_burst_of_mail_runs_in_one_engine() {
    let Some(stage) = Stage::set("[[rule]]\nanswer.text = 'ok'").await else {
        return;
    };
    let mut stage = stage.with("HIVE_ENGINE_LINGER_SECS", "30");
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(stage.send(&format!("number {number}")).await);
    }
    stage.start();
    for id in ids {
        assert_eq!(stage.acked(id).await.deliveries, 1);
    }
    stage.turns_ended(5).await;
    assert_eq!(stage.outcomes(), ["ok"; 5]);
    let asked = stage.model.requests();
    assert_eq!(asked.len(), 5);
    assert!(
        asked[4].body["messages"].to_string().contains("number 0"),
        "one session"
    );
    stage.signal(rustix::process::Signal::TERM);
    assert_eq!(stage.ended().await, Some(0));
    assert_eq!(crate::stage::processes_of(&stage.path("state")), [0; 0]);
}

#[tokio::test]
async fn a_failed_turn_in_a_warm_engine_is_tried_again() {
    let scenario = "[[rule]]\ntimes = 1\nwhen.call = 2\nfault.kind = 'overloaded'\n[[rule]]\nanswer.text = 'ok'";
    let Some(stage) = Stage::set(scenario).await else {
        return;
    };
    let mut stage = stage.with("HIVE_ENGINE_LINGER_SECS", "30");
    stage.start();
    for deliveries in [1, 2, 1] {
        let id = stage.send("next").await;
        assert_eq!(stage.acked(id).await.deliveries, deliveries);
    }
}
