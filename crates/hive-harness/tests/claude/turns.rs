//! Turns that go well, and what is kept of them.

use crate::stage::Stage;

#[tokio::test]
async fn t1_t4_t5_t11_a_message_is_a_turn_and_acked_when_it_ended_well() {
    let Some(mut stage) = Stage::new("[[rule]]\nanswer.text = 'Hello, {{from}}.'").await else {
        return;
    };
    let id = stage.send("good morning").await;
    let receipt = stage.acked(id).await;
    assert_eq!(receipt.deliveries, 1);
    stage.turns_ended(1).await;

    let start = stage.of("turn_start")[0];
    assert_eq!(
        (&start["from"], &start["body"], &start["unread"]),
        (&"operator".into(), &"good morning".into(), &0.into())
    );
    let said = stage
        .event("stream", |data| data["value"]["type"] == "assistant")
        .await;
    assert_eq!(
        said["value"]["message"]["content"][0]["text"],
        "Hello, operator."
    );
    stage
        .event("stream", |data| data["value"]["type"] == "result")
        .await;
    assert_eq!(stage.outcomes(), ["ok"]);

    let asked = stage.model.requests();
    assert_eq!(asked.len(), 1, "one turn is one question to the model");
    assert!(
        asked[0]
            .last_user
            .contains(&format!("Message {id} from operator"))
    );
    let system = asked[0].body["system"].to_string();
    assert!(
        system.contains("ada"),
        "the system prompt is ours: {system}"
    );
}

#[tokio::test]
async fn t12_a_turn_leaves_a_row_with_its_own_cost() {
    let scenario = "[[rule]]\nanswer = { text = 'ok', usage = { input_tokens = 1000, output_tokens = 10, cache_read_tokens = 500 } }";
    let Some(mut stage) = Stage::new(scenario).await else {
        return;
    };
    for _ in 0..2 {
        let id = stage.send("count this").await;
        stage.acked(id).await;
    }
    stage.turns_ended(2).await;
    let rows = loop {
        let rows = stage.rows().await;
        if rows.len() == 2 {
            break rows;
        }
        stage.more("the rows of two turns").await;
    };
    for row in &rows {
        let counts = &row.counts;
        assert_eq!(
            (
                counts.input_tokens,
                counts.output_tokens,
                counts.cache_read_tokens
            ),
            (1000, 10, 500)
        );
        assert_eq!(
            (counts.context_tokens, counts.outcome.as_str()),
            (1500, "ok")
        );
        assert!(
            counts.cost_micro_usd > 0 && counts.engine_ms > 0 && counts.model.contains("sonnet")
        );
    }
    let costs: Vec<_> = rows.iter().map(|row| row.counts.cost_micro_usd).collect();
    assert_eq!(
        costs[0], costs[1],
        "the second turn costs as much as the first, not their sum"
    );
    assert_eq!(rows[0].counts.session_id, rows[1].counts.session_id);
}

#[tokio::test]
async fn t30_the_agents_own_notes_reach_the_model_in_every_turn() {
    let Some(mut stage) = Stage::new("[[rule]]\nanswer.text = 'ok'").await else {
        return;
    };
    for (turn, note) in ["Call the operator Captain.", "Call the operator Admiral."]
        .iter()
        .enumerate()
    {
        std::fs::write(stage.path("state/CLAUDE.md"), note).unwrap();
        let id = stage.send("hello").await;
        stage.acked(id).await;
        let asked = stage.model.requests();
        assert!(
            asked[turn].body.to_string().contains(note),
            "turn {turn} does not know the note"
        );
    }
}

#[tokio::test]
async fn t6_words_about_limits_in_a_conversation_are_only_words() {
    let text =
        "The API said 429 rate_limit_error, then authentication_failed: 401. Prompt is too long.";
    let Some(mut stage) = Stage::new(&format!("[[rule]]\nanswer.text = '{text}'")).await else {
        return;
    };
    let id = stage.send(text).await;
    assert_eq!(stage.acked(id).await.deliveries, 1);
    stage.turns_ended(1).await;
    assert_eq!(stage.outcomes(), ["ok"]);
}
