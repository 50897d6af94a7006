//! One session over many turns, compaction, and leaving it behind.

use hive_wire::control::ControlAction;

use crate::stage::Stage;

/// A model that answers with how much of the conversation it was shown.
const ECHO: &str = "[[rule]]\nanswer.text = 'ok'";

#[tokio::test]
async fn t19_turns_share_a_session_until_a_new_one_is_asked_for() {
    let Some(mut stage) = Stage::new(ECHO).await else {
        return;
    };
    for body in ["the code word is heron", "what was it?"] {
        let id = stage.send(body).await;
        stage.acked(id).await;
    }
    let asked = stage.model.requests();
    assert!(
        asked[1].body["messages"].to_string().contains("heron"),
        "the second turn knows the first"
    );

    let outcome = stage.control(ControlAction::NewSession).await;
    assert_eq!(outcome.carried_out, Some(true), "{outcome:?}");
    for (call, knows) in [(2, false), (3, true)] {
        let id = stage.send("and now?").await;
        stage.acked(id).await;
        let messages = stage.model.requests()[call].body["messages"].to_string();
        assert!(!messages.contains("heron"), "the old session is gone");
        assert_eq!(
            messages.matches("and now?").count() > 1,
            knows,
            "only one turn begins anew"
        );
    }
}

#[tokio::test]
async fn t17_the_model_is_switched_for_the_next_turn_and_kept() {
    let Some(mut stage) = Stage::new(ECHO).await else {
        return;
    };
    let id = stage.send("first").await;
    stage.acked(id).await;
    let name = "claude-opus-4-5".to_owned();
    stage
        .control(ControlAction::Model { name: name.clone() })
        .await;
    let id = stage.send("second").await;
    stage.acked(id).await;
    stage.signal(rustix::process::Signal::TERM);
    assert_eq!(stage.ended().await, Some(0));
    stage.start();
    let id = stage.send("third").await;
    stage.acked(id).await;
    let models: Vec<_> = stage
        .model
        .requests()
        .iter()
        .map(|seen| seen.body["model"].clone())
        .collect();
    assert_eq!(models, ["claude-sonnet-4-5", name.as_str(), name.as_str()]);
}

#[tokio::test]
async fn t23_a_compaction_on_demand_shortens_the_session() {
    let Some(mut stage) = Stage::new(ECHO).await else {
        return;
    };
    for body in ["the code word is heron", "and the number is seven"] {
        let id = stage.send(body).await;
        stage.acked(id).await;
    }
    let outcome = stage.control(ControlAction::Compact).await;
    assert_eq!(
        outcome.carried_out,
        Some(true),
        "{outcome:?}\n{}",
        stage.story()
    );
    let boundary = |data: &serde_json::Value| data["value"]["subtype"] == "compact_boundary";
    stage.event("stream", boundary).await;
    stage
        .event("state", |data| data["turn_state"] == "compacting")
        .await;
    let id = stage.send("go on").await;
    stage.acked(id).await;
}

#[tokio::test]
async fn t20_a_prompt_that_is_too_long_is_compacted_and_tried_once_more() {
    let scenario = r#"
        [[rule]]
        times = 1
        when.call = 2
        fault.kind = "prompt_too_long"
        [[rule]]
        answer.text = "ok"
    "#;
    let Some(mut stage) = Stage::new(scenario).await else {
        return;
    };
    let id = stage.send("warm up").await;
    stage.acked(id).await;
    let id = stage.send("this one is too much").await;
    let receipt = stage.acked(id).await;
    assert_eq!(receipt.deliveries, 1, "the same turn tries again");
    stage.turns_ended(2).await;
    let asked = stage.model.requests();
    let last = &asked[asked.len() - 1];
    assert!(
        last.last_user.contains(&id.to_string()),
        "the repeat names the message: {}",
        last.last_user
    );
    assert!(
        asked.iter().any(|seen| seen.last_user.contains("summary")),
        "a summary was made"
    );
}
