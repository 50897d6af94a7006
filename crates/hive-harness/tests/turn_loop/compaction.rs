//! Conversations that grow too long (T20–T23).

use hive_wire::{
    control::ControlAction,
    report::{PostedKind, TurnKind},
};

use crate::{host::Call, rig::Rig};

const TOO_LONG: &str = "init\nerror 400 invalid_request prompt_too_long Prompt is too long\n";

fn kinds(rig: &Rig) -> Vec<TurnKind> {
    rig.host
        .look(|book| book.rows.iter().map(|row| row.kind).collect())
}

#[tokio::test]
async fn t20_too_long_is_compacted_and_the_same_message_tried_once_more() {
    let rig = Rig::new();
    rig.script(&format!("once on hello\n{TOO_LONG}"));
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(1).await }).await;
    let prompts = rig.prompts();
    assert_eq!(prompts.len(), 3, "{prompts:?}");
    assert_eq!(prompts[1], "/compact");
    assert!(prompts[2].contains("the same message 1"), "{}", prompts[2]);
    rig.host.look(|book| {
        assert_eq!(book.calls[..2], [Call::Leased(id), Call::Acked(vec![id.0])]);
        assert_eq!(book.of(PostedKind::TurnEnd)[0]["outcome"], "compacted");
        let states = book.of(PostedKind::State);
        let doing: Vec<_> = states
            .iter()
            .map(|s| s["turn_state"].as_str().unwrap())
            .collect();
        assert!(
            doing.starts_with(&["idle", "thinking", "compacting", "thinking", "idle"]),
            "{doing:?}"
        );
    });
}

#[tokio::test]
async fn t20_a_compaction_that_fails_begins_a_new_session_with_a_brief() {
    let rig = Rig::new();
    rig.script(&format!(
        "once on hello\n{TOO_LONG}on /compact\ninit\ncompact failed cannot\nresult\n"
    ));
    rig.host.send("earlier words");
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(2).await }).await;
    let prompts = rig.prompts();
    let last = prompts.last().unwrap();
    assert!(
        last.starts_with("A new conversation begins here."),
        "{last}"
    );
    assert!(last.contains("message 1 from bob, ended as ok."), "{last}");
    assert!(
        last.contains("earlier words") && last.contains("\nhello\n"),
        "{last}"
    );
    assert!(!rig.argvs().last().unwrap().contains("--continue"));
    rig.host
        .look(|book| assert!(book.has(&Call::Acked(vec![id.0]))));
}

#[tokio::test]
async fn t20_a_message_that_never_fits_fails_after_a_bounded_number_of_runs() {
    let rig = Rig::new();
    rig.script(&format!("on hello\n{TOO_LONG}"));
    rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(1).await }).await;
    let prompts: Vec<_> = rig.prompts().into_iter().take(4).collect();
    // The message, a compaction, the message again, and a new session.
    assert_eq!(prompts[1], "/compact");
    assert!(
        prompts[3].starts_with("A new conversation begins here."),
        "{}",
        prompts[3]
    );
    rig.host.look(|book| {
        let end = book.of(PostedKind::TurnEnd)[0];
        assert_eq!(end["outcome"], "too_long");
        assert!(book.parent[0].contains("does not fit"), "{:?}", book.parent);
    });
}

#[tokio::test]
async fn t20_an_outage_during_compaction_gives_the_session_another_chance() {
    let rig = Rig::new();
    rig.script(&format!(
        "once on hello\n{TOO_LONG}once on /compact\ninit\nerror 529 overloaded api_error Overloaded\n"
    ));
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(2).await }).await;
    assert!(
        rig.argvs().iter().all(|argv| argv.contains("--continue")),
        "{:?}",
        rig.argvs()
    );
    rig.host
        .look(|book| assert!(book.has(&Call::Acked(vec![id.0]))));
}

#[tokio::test]
async fn t21_a_full_context_is_noted_and_compacted_after_the_ack() {
    let rig = Rig::new();
    rig.script("on hello\ninit\ncontext 150000\nsay much\nresult\n");
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("compaction", |book| book.rows.len() == 3)
            .await;
        rig.host.send("after");
        rig.host.turns_ended(2).await;
    })
    .await;
    assert_eq!(
        kinds(&rig)[..3],
        [TurnKind::Mail, TurnKind::Checkpoint, TurnKind::Compact]
    );
    let prompts = rig.prompts();
    assert!(
        prompts[1].starts_with("Checkpoint, from the hive itself."),
        "{}",
        prompts[1]
    );
    assert_eq!(prompts[2], "/compact");
    assert!(prompts[3].contains("after"), "{}", prompts[3]);
    let argvs = rig.argvs();
    assert!(argvs[0].contains("mcp__hyperhive"));
    assert!(
        !argvs[1].contains("mcp__hyperhive"),
        "a checkpoint takes no mail: {}",
        argvs[1]
    );
    rig.host.look(|book| {
        assert_eq!(book.calls[1], Call::Acked(vec![id.0]));
        let end = book
            .events
            .iter()
            .position(|(_, kind, _)| *kind == PostedKind::TurnEnd);
        let checkpoint = book.events.iter().position(|(_, kind, data)| {
            *kind == PostedKind::Note
                && data["text"]
                    .as_str()
                    .unwrap()
                    .contains("notes, then compaction")
        });
        assert!(end < checkpoint, "the turn is over before");
    });
}

#[tokio::test]
async fn t21_zero_switches_it_off() {
    let rig = Rig::new().with("HIVE_COMPACT_WATERMARK_TOKENS", "0");
    rig.script("on hello\ninit\ncontext 199000\nsay much\nresult\n");
    rig.host.send("hello");
    rig.play(async {
        rig.host.turns_ended(1).await;
        rig.host.send("after");
        rig.host.turns_ended(2).await;
    })
    .await;
    assert_eq!(rig.prompts().len(), 2);
}

#[tokio::test]
async fn t21_compaction_that_brings_nothing_ends_in_a_new_session_and_then_in_peace() {
    let rig = Rig::new();
    rig.script("on hello\ninit\ncontext 180000\nsay much\nresult\n");
    rig.play(async {
        for n in 1..=5 {
            rig.host.send("hello");
            rig.host.turns_ended(n).await;
        }
        rig.host
            .wait("peace", |book| {
                book.notes().contains("no more compaction until it shrinks")
            })
            .await;
    })
    .await;
    let compactions = rig
        .prompts()
        .iter()
        .filter(|prompt| *prompt == "/compact")
        .count();
    assert_eq!(compactions, 1);
    let fresh = rig
        .argvs()
        .iter()
        .filter(|argv| !argv.contains("--continue"))
        .count();
    assert_eq!(fresh, 1, "one new session");
}

#[tokio::test]
async fn t21_a_compaction_that_fails_never_fails_the_turn_before_it() {
    let rig = Rig::new();
    rig.script(
        "on hello\ninit\ncontext 150000\nsay much\nresult\n\
         on Checkpoint\nexit 9\non /compact\ninit\ncompact failed cannot\nresult\n",
    );
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("compaction", |book| book.rows.len() == 3)
            .await;
        rig.host.send("after");
        rig.host.turns_ended(2).await;
    })
    .await;
    rig.host.look(|book| {
        assert_eq!(book.calls[1], Call::Acked(vec![id.0]));
        assert!(book.parent.is_empty(), "{:?}", book.parent);
        assert!(
            book.notes().contains("checkpoint turn did not end well"),
            "{}",
            book.notes()
        );
    });
    let last = rig.prompts().pop().unwrap();
    assert!(
        last.starts_with("A new conversation begins here."),
        "{last}"
    );
}

#[tokio::test]
async fn t22_a_large_and_cold_conversation_is_noted_and_begun_anew() {
    let rig = Rig::new()
        .with("HIVE_CACHE_TTL_SECS", "0")
        .with("HIVE_COMPACT_WATERMARK_TOKENS", "0");
    rig.script("on hello\ninit\ncontext 100000\nsay much\nresult\n");
    rig.host.send("hello");
    rig.play(async {
        rig.host.turns_ended(1).await;
        rig.host.send("after the pause");
        rig.host.turns_ended(2).await;
    })
    .await;
    let prompts = rig.prompts();
    assert!(
        prompts[1].contains("a new conversation begins"),
        "{}",
        prompts[1]
    );
    assert!(prompts[2].starts_with("A new conversation begins here. There was a long pause"));
    let argvs = rig.argvs();
    assert!(
        argvs[1].contains("--continue"),
        "the notes belong to the old one"
    );
    assert!(!argvs[1].contains("mcp__hyperhive"), "{}", argvs[1]);
    assert!(!argvs[2].contains("--continue"));
    rig.host.look(|book| assert_eq!(book.acks(), 2));
}

#[tokio::test]
async fn t23_the_operator_forces_a_compaction_and_hears_what_came_of_it() {
    let rig = Rig::new();
    rig.script("once on /compact\ninit\ncompact failed nothing to compact\nresult\n");
    rig.play(async {
        rig.host
            .wait("receive", |book| !book.turns.is_empty())
            .await;
        let first = rig.host.ask(ControlAction::Compact);
        let answer = rig.host.answer(first).await;
        assert!(!answer.ok);
        assert!(answer.note.unwrap().contains("nothing to compact"));
        let second = rig.host.ask(ControlAction::Compact);
        assert!(rig.host.answer(second).await.ok);
        // The receive that was parked meanwhile still stands.
        rig.host.send("hello");
        rig.host.turns_ended(1).await;
    })
    .await;
    rig.host.look(|book| {
        let states = book.of(PostedKind::State);
        let compacting = states
            .iter()
            .filter(|s| s["turn_state"] == "compacting")
            .count();
        assert_eq!(compacting, 2);
        let start = book.of(PostedKind::TurnStart)[0];
        assert_eq!(start["turn"], book.turns[0].as_str(), "the same receive");
    });
}
