//! Turns that do not go well: what goes back and why, what is waited for, who is told.

use std::time::Duration;

use hive_wire::{
    Timestamp,
    agent::RequeueReason,
    control::ControlAction,
    report::{HarnessStatus, PostedKind},
};

use crate::{host::Call, rig::Rig};

/// The outcomes of all turns, in order.
fn outcomes(rig: &Rig) -> Vec<String> {
    let word = |data: &&serde_json::Value| data["outcome"].as_str().unwrap().to_owned();
    rig.host
        .look(|book| book.of(PostedKind::TurnEnd).iter().map(word).collect())
}

#[tokio::test]
async fn t6_a_limit_is_waited_for_until_its_reset_and_counts_for_nothing() {
    let rig = Rig::new();
    let reset = Timestamp::now().millis() / 1000 + 2;
    rig.script(&format!("once on hello\ninit\nlimit {reset}\n"));
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(2).await }).await;
    assert_eq!(outcomes(&rig), ["rate_limited", "ok"]);
    rig.host.look(|book| {
        assert_eq!(
            book.calls[..4],
            [
                Call::Leased(id),
                Call::Requeued(RequeueReason::RateLimited),
                Call::Leased(id),
                Call::Acked(vec![id.0]),
            ]
        );
        let limited = book
            .states
            .iter()
            .find(|s| s.status == HarnessStatus::RateLimited)
            .unwrap();
        assert_eq!(
            limited.resets_at,
            Some(Timestamp::from_millis(reset * 1000))
        );
        let ended = book.of(PostedKind::State);
        let words: Vec<_> = ended
            .iter()
            .map(|data| data["status"].as_str().unwrap())
            .collect();
        assert!(
            words.contains(&"rate_limited") && words.ends_with(&["stopping"]),
            "{words:?}"
        );
        assert!(book.parent.is_empty(), "nobody is told of a limit");
        let again = book.of(PostedKind::TurnStart)[1];
        assert_eq!(again["delivery"], 2);
    });
    assert!(
        rig.prompts()[1].contains("This is delivery 2"),
        "{}",
        rig.prompts()[1]
    );
}

#[tokio::test]
async fn t6_a_limit_without_a_reset_waits_the_configured_time_and_can_be_lifted() {
    let rig = Rig::new().with("HIVE_RATE_LIMIT_SLEEP_SECS", "3600");
    rig.script("once on hello\ninit\nerror 429 rate_limit api_error Too many requests\n");
    rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("limit", |b| {
                b.states
                    .last()
                    .is_some_and(|s| s.status == HarnessStatus::RateLimited)
            })
            .await;
        let lift = rig.host.ask(ControlAction::Release);
        assert!(rig.host.answer(lift).await.ok);
        rig.host.turns_ended(2).await;
        rig.host
            .wait("online", |b| {
                b.states
                    .last()
                    .is_some_and(|s| s.status == HarnessStatus::Online)
            })
            .await;
    })
    .await;
    assert_eq!(outcomes(&rig), ["rate_limited", "ok"]);
}

#[tokio::test]
async fn t6_conversation_about_limits_is_no_limit() {
    let rig = Rig::new();
    rig.script(
        "on hello\ninit\nsay 429 rate_limit_error: Not logged in, Prompt is too long\nresult 429\n",
    );
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(1).await }).await;
    rig.host
        .look(|book| assert_eq!(book.calls[1], Call::Acked(vec![id.0])));
}

#[tokio::test]
async fn holds_gate_the_loop_before_and_after_a_receive() {
    let rig = Rig::new();
    let later = Timestamp::now().plus(Duration::from_secs(3_600));
    let hold = || ControlAction::Hold {
        until: later,
        reason: "the key is limited".to_owned(),
    };
    rig.play(async {
        // The loop is parked in a receive already: what it brings goes back.
        rig.host
            .wait("receive", |book| !book.turns.is_empty())
            .await;
        let held = rig.host.ask(hold());
        assert!(rig.host.answer(held).await.ok);
        let id = rig.host.send("hello");
        let back = Call::Requeued(RequeueReason::RateLimited);
        rig.host
            .wait("the message back", |book| book.has(&back))
            .await;
        rig.host
            .wait("note", |book| book.notes().contains("the key is limited"))
            .await;
        rig.host
            .look(|book| assert_eq!(book.calls, [Call::Leased(id), back.clone()]));
        assert!(rig.prompts().is_empty(), "no engine was started");

        let released = rig.host.ask(ControlAction::Release);
        assert!(rig.host.answer(released).await.ok);
        rig.host.turns_ended(1).await;
        rig.host
            .look(|book| assert!(book.has(&Call::Acked(vec![id.0]))));
    })
    .await;
}

#[tokio::test]
async fn a_hold_ends_by_itself_at_its_time() {
    let rig = Rig::new();
    let soon = Timestamp::now().plus(Duration::from_millis(300));
    rig.host.ask(ControlAction::Hold {
        until: soon,
        reason: "stagger".to_owned(),
    });
    rig.play(async {
        rig.host.wait("hold", |book| !book.done.is_empty()).await;
        rig.host.send("hello");
        rig.host.turns_ended(1).await;
        assert!(Timestamp::now() >= soon);
    })
    .await;
}

#[tokio::test]
async fn t11_an_outage_is_waited_out_and_not_counted() {
    let rig = Rig::new();
    rig.script(
        "once on hello\ninit\nerror 529 overloaded api_error Overloaded\n\
         once on hello\ninit\nerror - unknown api_error Connection refused\n",
    );
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(3).await }).await;
    rig.host.look(|book| {
        let back = Call::Requeued(RequeueReason::Unavailable);
        let backs = book.calls.iter().filter(|call| **call == back).count();
        assert_eq!(backs, 2, "{:?}", book.calls);
        assert!(book.has(&Call::Acked(vec![id.0])));
        let states = book.of(PostedKind::State);
        assert!(states.iter().any(|data| data["status"] == "unavailable"));
        assert!(book.parent.is_empty());
    });
}

#[tokio::test]
async fn t11_a_failure_goes_back_counted_and_the_parent_is_told_once() {
    let rig = Rig::new();
    rig.script("once on hello\ninit\nstderr it broke\nexit 3\n");
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(2).await }).await;
    assert_eq!(outcomes(&rig), ["failed", "ok"]);
    rig.host.look(|book| {
        assert_eq!(book.calls[1], Call::Requeued(RequeueReason::Failed));
        assert_eq!(book.calls[3], Call::Acked(vec![id.0]));
        assert_eq!(book.parent.len(), 1, "{:?}", book.parent);
        let told = &book.parent[0];
        assert!(
            told.starts_with("[system] A turn of ada failed, about message 1 from bob"),
            "{told}"
        );
        let end = book.of(PostedKind::TurnEnd)[0];
        assert_eq!(end["ok"], false);
        assert!(end["note"].is_string());
    });
}

#[tokio::test]
async fn t11_an_engine_that_is_killed_is_a_crash() {
    let rig = Rig::new();
    rig.script("once on hello\ninit\ndie KILL\n");
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(2).await }).await;
    rig.host.look(|book| {
        assert_eq!(
            book.calls[1],
            Call::Requeued(RequeueReason::Crash),
            "{}",
            book.notes()
        );
        assert!(book.has(&Call::Acked(vec![id.0])));
    });
}

#[tokio::test]
async fn t11_many_failures_do_not_flood_the_parent() {
    let rig = Rig::new();
    rig.script("on hello\nexit 3\n");
    rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(8).await }).await;
    rig.host.look(|book| {
        assert_eq!(book.parent.len(), 5);
        assert!(
            book.notes().contains("the parent is not told"),
            "{}",
            book.notes()
        );
    });
}

#[tokio::test]
async fn a_silent_engine_and_one_that_stays_are_ended() {
    let rig = Rig::new()
        .with("HIVE_ENGINE_SILENCE_SECS", "1")
        .with("HIVE_ENGINE_EXIT_SECS", "1");
    rig.script("once on hello\ninit\nhang\nonce on hello\ninit\nresult done\nstay\n");
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(2).await }).await;
    rig.host.look(|book| {
        assert_eq!(book.calls[1], Call::Requeued(RequeueReason::Failed));
        // It had said its result: only its leaving was overdue.
        assert_eq!(book.calls[3], Call::Acked(vec![id.0]), "{}", book.notes());
    });
}
