//! Turns for the conversation itself: they take no mail, whatever the model tries.

use hive_wire::{MessageId, agent::MessageState};

use crate::stage::Stage;

/// A first turn that fills the context, then a model that reaches for mail when it should write its
/// notes.
const REACHES_FOR_MAIL: &str = r#"
    [[rule]]
    when = { last_user = "Checkpoint, from the hive itself", step = 0 }
    answer.tools = [{ name = "mcp__hyperhive__recv", input = { max = 5 } }]
    answer.usage = { input_tokens = 9000, output_tokens = 1 }
    [[rule]]
    when = { last_user = "Checkpoint, from the hive itself" }
    answer.text = "noted"
    answer.usage = { input_tokens = 9000, output_tokens = 1 }
    [[rule]]
    when.body = "first"
    answer.text = "ok"
    answer.usage = { input_tokens = 9000, output_tokens = 1 }
    [[rule]]
    answer.text = "ok"
    answer.usage = { input_tokens = 100, output_tokens = 1 }
"#;

/// Two messages: a checkpoint and a compaction come between their turns. Says what the model was
/// told when it reached for the second one there.
async fn checkpoint_between_two_messages(stage: Stage) -> String {
    let mut stage = stage.with("HIVE_COMPACT_WATERMARK_TOKENS", "8000");
    let first = stage.send("first").await;
    let second = stage.send("second").await;
    stage.start();
    assert_eq!(stage.acked(first).await.deliveries, 1);
    // The first turn, the call in the checkpoint, what came of it.
    stage.model.wait_for_requests(3).await.unwrap();
    assert_eq!(stage.receipt(second).await.state, MessageState::Stored);

    assert_eq!(stage.acked(second).await.deliveries, 1);
    stage.turns_ended(2).await;
    assert_eq!(stage.outcomes(), ["ok", "ok"], "{}", stage.story());
    let turns: Vec<Vec<MessageId>> = stage
        .of("turn_start")
        .iter()
        .map(|data| serde_json::from_value(data["message_ids"].clone()).unwrap())
        .collect();
    assert_eq!(turns, [[first], [second]], "each has a turn of its own");
    let boundary = |data: &serde_json::Value| data["value"]["subtype"] == "compact_boundary";
    stage.event("stream", boundary).await;

    let asked = stage.model.requests();
    let messages = asked[2].body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].to_string()
}

/// The engine as an operator may set it up who lets the model use every tool of the hive.
fn generous(stage: Stage) -> Stage {
    let engine = crate::engine::under_test().unwrap();
    let engine = format!("{} --allowedTools mcp__hyperhive", engine.display());
    stage.with("HIVE_ENGINE", &engine)
}

#[tokio::test]
async fn t21_a_checkpoint_may_not_use_the_tools_for_mail() {
    let Some(stage) = Stage::set(REACHES_FOR_MAIL).await else {
        return;
    };
    let told = checkpoint_between_two_messages(stage).await;
    assert!(told.contains("\"is_error\":true"), "{told}");
}

#[tokio::test]
async fn t21_where_it_may_use_them_the_hive_itself_refuses() {
    let Some(stage) = Stage::set(REACHES_FOR_MAIL).await else {
        return;
    };
    let told = checkpoint_between_two_messages(generous(stage)).await;
    assert!(told.contains("There is no mail in this turn"), "{told}");
}

#[tokio::test]
async fn t21_a_warm_engine_for_mail_is_not_used_for_a_checkpoint() {
    let Some(stage) = Stage::set(REACHES_FOR_MAIL).await else {
        return;
    };
    let stage = stage.with("HIVE_ENGINE_LINGER_SECS", "30");
    let told = checkpoint_between_two_messages(generous(stage)).await;
    assert!(told.contains("There is no mail in this turn"), "{told}");
}
