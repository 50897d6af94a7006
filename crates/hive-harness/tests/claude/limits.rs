//! What the model's service can do to a turn: limits, refusals, outages.

use hive_wire::{agent::MessageState, host::Dead};

use crate::stage::Stage;

fn once(fault: &str) -> String {
    format!("[[rule]]\ntimes = 1\nfault = {{ {fault} }}\n[[rule]]\nanswer.text = 'ok'")
}

#[tokio::test]
async fn t6_a_rate_limit_is_waited_out_until_its_reset() {
    let fault = r#"kind = "rate_limit", subscription = "five_hour", reset_in_secs = 2"#;
    let Some(stage) = Stage::set(&once(fault)).await else {
        return;
    };
    // Only those who logged in are told about a subscription's limits.
    let stage = stage.with("ANTHROPIC_API_KEY", "");
    let mut stage = stage.with("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy");
    stage.start();
    let id = stage.send("do it when you can").await;
    stage
        .event("state", |data| data["status"] == "rate_limited")
        .await;
    let receipt = stage.acked(id).await;
    assert_eq!(
        receipt.deliveries, 2,
        "it came again, and was not counted against the message"
    );
    stage.turns_ended(2).await;
    assert_eq!(stage.outcomes(), ["rate_limited", "ok"]);
    stage.status("online").await;
    assert_eq!(
        stage.model.requests().len(),
        2,
        "nothing was asked while it waited"
    );
}

#[tokio::test]
async fn t6_a_limit_that_states_no_reset_is_waited_out_for_a_set_time() {
    let Some(stage) = Stage::set(&once(r#"kind = "rate_limit""#)).await else {
        return;
    };
    let mut stage = stage.with("HIVE_RATE_LIMIT_SLEEP_SECS", "1");
    stage.start();
    let id = stage.send("do it when you can").await;
    assert_eq!(stage.acked(id).await.deliveries, 2);
    stage.turns_ended(2).await;
    assert_eq!(stage.outcomes(), ["rate_limited", "ok"]);
}

#[tokio::test]
async fn t7_t8_two_refusals_park_the_agent_until_its_credentials_change() {
    let scenario = "[[rule]]\ntimes = 2\nfault.kind = 'unauthorized'\n[[rule]]\nanswer.text = 'ok'";
    let Some(mut stage) = Stage::new(scenario).await else {
        return;
    };
    std::fs::write(stage.path("claude/.credentials.json"), "{}").unwrap();
    let id = stage.send("are you there?").await;
    stage.status("needs_login_idle").await;
    assert!(stage.path("state/hyperhive-needs-login").exists());
    assert_eq!(
        stage.receipt(id).await.state,
        MessageState::Stored,
        "it waits in the inbox"
    );
    assert_eq!(
        stage.model.requests().len(),
        2,
        "tried, tried once more at once, then parked"
    );

    std::fs::write(
        stage.path("claude/.credentials.json.new"),
        r#"{"fresh":true}"#,
    )
    .unwrap();
    std::fs::rename(
        stage.path("claude/.credentials.json.new"),
        stage.path("claude/.credentials.json"),
    )
    .unwrap();
    std::fs::write(stage.path("claude/extra"), "").unwrap();
    stage.acked(id).await;
    stage.status("online").await;
    assert!(!stage.path("state/hyperhive-needs-login").exists());
}

#[tokio::test]
async fn t11_outages_are_tried_again_and_not_counted() {
    let scenario = r#"
        [[rule]]
        times = 2
        fault.kind = "overloaded"
        [[rule]]
        times = 5
        fault.kind = "server_error"
        [[rule]]
        answer.text = "ok"
    "#;
    let Some(mut stage) = Stage::new(scenario).await else {
        return;
    };
    let id = stage.send("patience").await;
    let receipt = stage.acked(id).await;
    assert_eq!(receipt.deliveries, 8, "more often than a message may fail");
    stage.turns_ended(8).await;
    assert_eq!(stage.outcomes()[..7], ["unavailable"; 7]);
    let dead = stage
        .hive
        .host_client()
        .call(&Dead::default())
        .await
        .unwrap();
    assert!(dead.messages.is_empty());
}

#[tokio::test]
async fn t11_a_turn_that_fails_five_times_is_a_dead_letter_and_the_parent_is_told() {
    let Some(mut stage) = Stage::new("[[rule]]\nfault.kind = 'bad_request'").await else {
        return;
    };
    let id = stage.send("impossible").await;
    while stage.receipt(id).await.state != MessageState::Dead {
        stage.more("a dead letter").await;
    }
    let inbox = stage
        .hive
        .host_client()
        .call(&hive_wire::host::Inbox::default())
        .await
        .unwrap();
    assert!(
        inbox
            .messages
            .iter()
            .any(|mail| mail.body.starts_with("[system]")),
        "{inbox:?}"
    );
}

#[tokio::test]
async fn t11_a_refused_connection_is_an_outage() {
    let Some(mut stage) = Stage::set("[[rule]]\nanswer.text = 'ok'").await else {
        return;
    };
    stage.model.refuse().await;
    stage.start();
    let id = stage.send("anybody?").await;
    stage
        .event("turn_end", |data| data["outcome"] == "unavailable")
        .await;
    stage.model.accept_again().await;
    stage.acked(id).await;
}
