//! Requests of the host: interrupting, and being asked twice.

use std::fs;

use hive_wire::{control::ControlAction, report::PostedKind};

use crate::{host::Call, rig::Rig};

#[tokio::test]
async fn c18_an_interrupt_stops_the_turn_and_the_next_message_joins_it() {
    let rig = Rig::new();
    rig.script("on hello\ninit\nsay working\nhang\n");
    let first = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        let stop = rig.host.ask(ControlAction::Interrupt);
        assert!(rig.host.answer(stop).await.ok);
        rig.host.turns_ended(1).await;
        rig.host.look(|book| {
            let end = book.of(PostedKind::TurnEnd)[0];
            assert_eq!(
                (&end["ok"], &end["outcome"]),
                (&false.into(), &"interrupted".into())
            );
            assert_eq!(
                book.calls,
                [Call::Leased(first)],
                "neither acked nor run again"
            );
        });
        let idle = rig.host.ask(ControlAction::Interrupt);
        let idle = rig.host.answer(idle).await;
        assert_eq!(
            (idle.ok, idle.note.as_deref()),
            (false, Some("no turn is running"))
        );

        let second = rig.host.send("do this instead");
        rig.host.turns_ended(2).await;
        rig.host.look(|book| {
            let wanted = [
                Call::Leased(first),
                Call::Leased(second),
                Call::Acked(vec![first.0, second.0]),
            ];
            assert_eq!(book.calls, wanted);
            let starts = book.of(PostedKind::TurnStart);
            assert_eq!(starts[0]["turn"], starts[1]["turn"], "one turn for both");
            assert!(book.parent.is_empty());
        });
    })
    .await;
    let prompt = rig.prompts().pop().unwrap();
    assert!(
        prompt.contains("interrupted your last turn, which was about message 1"),
        "{prompt}"
    );
}

#[tokio::test]
async fn c18_an_interrupted_message_goes_back_when_the_harness_stops() {
    let rig = Rig::new();
    rig.script("on hello\ninit\nsay working\nhang\n");
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        rig.host.ask(ControlAction::Interrupt);
        rig.host.turns_ended(1).await;
    })
    .await;
    rig.host.look(|book| {
        let back = Call::Requeued(hive_wire::agent::RequeueReason::Shutdown);
        assert_eq!(book.calls, [Call::Leased(id), back]);
    });
}

#[tokio::test]
async fn a_request_that_comes_twice_is_carried_out_once_and_answered_twice() {
    let rig = Rig::new();
    rig.play(async {
        let wish = rig.host.ask(ControlAction::NewSession);
        rig.host.answer(wish).await;
        rig.host.send("one");
        rig.host.turns_ended(1).await;
        rig.host.ask_again();
        rig.host
            .wait("second answer", |book| book.done.len() >= 2)
            .await;
        rig.host.send("two");
        rig.host.turns_ended(2).await;
    })
    .await;
    let fresh = rig
        .argvs()
        .iter()
        .filter(|argv| !argv.contains("--continue"))
        .count();
    assert_eq!(fresh, 1);
}

#[tokio::test]
async fn t19_a_wish_for_a_new_session_outlasts_a_turn_that_reached_no_engine() {
    let rig = Rig::new();
    let prompt = rig.path("harness/claude-system-prompt.md");
    rig.play(async {
        rig.host.send("one");
        rig.host.turns_ended(1).await;
        // What the engine is to be told cannot be written.
        fs::remove_file(&prompt).unwrap();
        fs::create_dir_all(prompt.join("in the way")).unwrap();
        fs::write(rig.path("state/CLAUDE.md"), "Something new.").unwrap();
        let wish = rig.host.ask(ControlAction::NewSession);
        rig.host.answer(wish).await;
        let second = rig.host.send("two");
        rig.host.turns_ended(2).await;
        fs::remove_dir_all(&prompt).unwrap();
        let acked = Call::Acked(vec![second.0]);
        rig.host.wait("it goes on", |book| book.has(&acked)).await;
        let third = Call::Acked(vec![rig.host.send("three").0]);
        rig.host.wait("the third", |book| book.has(&third)).await;
    })
    .await;
    let continues: Vec<bool> = rig
        .argvs()
        .iter()
        .map(|argv| argv.contains("--continue"))
        .collect();
    assert_eq!(continues, [true, false, true]);
}

#[tokio::test]
async fn c18_a_pause_that_is_over_before_its_turn_is_gives_the_message_back_too() {
    let rig = Rig::new();
    rig.script("once on hello\ninit\nsay working\nhang\n");
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        rig.host.ask(ControlAction::Pause {
            reason: "a mistake".to_owned(),
            now: true,
        });
        rig.host.ask(ControlAction::Resume);
        rig.host.turns_ended(2).await;
    })
    .await;
    rig.host.look(|book| {
        let wanted = [
            Call::Leased(id),
            Call::Requeued(hive_wire::agent::RequeueReason::Interrupted),
            Call::Leased(id),
            Call::Acked(vec![id.0]),
        ];
        assert_eq!(book.calls[..4], wanted);
    });
}

#[tokio::test]
async fn c18_a_pause_with_now_gives_the_message_back_and_no_turn_begins_until_it_is_over() {
    let rig = Rig::new();
    rig.script("on hello\ninit\nsay working\nhang\n");
    let first = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        let pause = rig.host.ask(ControlAction::Pause {
            reason: "lunch".into(),
            now: true,
        });
        assert!(rig.host.answer(pause).await.ok);
        let back = Call::Requeued(hive_wire::agent::RequeueReason::Interrupted);
        rig.host
            .wait("the message is back", |book| book.has(&back))
            .await;
        // Whatever else is asked of it, it begins nothing.
        let asked = rig.host.ask(ControlAction::NewSession);
        assert!(rig.host.answer(asked).await.ok);
        rig.host.look(|book| {
            assert_eq!(book.calls, [Call::Leased(first), back.clone()]);
            assert!(book.notes().contains("paused: lunch"), "{}", book.notes());
        });
        rig.host.ask(ControlAction::Resume);
        rig.host
            .wait("it goes on", |book| book.calls.len() == 3)
            .await;
        rig.host
            .look(|book| assert_eq!(book.calls[2], Call::Leased(first)));
    })
    .await;
}
