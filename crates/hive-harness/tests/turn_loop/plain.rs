//! Turns that go well: what the model is told, what is acked, what is seen.

use std::fs;

use hive_wire::{
    MessageId,
    control::ControlAction,
    report::{PostedKind, TurnKind, TurnState},
};

use crate::{host::Call, rig::Rig};

#[tokio::test]
async fn t1_t2_t3_t4_t5_t10_t11_t12_a_message_becomes_a_turn_and_is_acked() {
    let rig = Rig::new();
    rig.script("on hello\ninit\ntool Read\nsay all done\nstderr a warning\nresult all done\n");
    let id = rig.host.send("hello there");
    rig.play(async {
        rig.host.turns_ended(1).await;
        rig.host.wait("row", |book| !book.rows.is_empty()).await;
    })
    .await;

    rig.host.look(|book| {
        assert_eq!(book.calls[..2], [Call::Leased(id), Call::Acked(vec![id.0])]);
        let start = book.of(PostedKind::TurnStart)[0];
        assert_eq!(start["from"], "bob");
        assert_eq!(start["body"], "hello there");
        assert_eq!(start["unread"], 0);
        assert_eq!(start["message_ids"][0], 1);
        let end = book.of(PostedKind::TurnEnd)[0];
        assert_eq!((&end["ok"], &end["outcome"]), (&true.into(), &"ok".into()));
        assert_eq!(end["turn"], start["turn"]);
        for what in [
            "receive_to_spawn_us",
            "exit_to_settled_us",
            "engine_us",
            "total_us",
            "spawned_at_us",
        ] {
            assert!(end["timing"][what].is_u64(), "{what}");
        }
        let kinds: Vec<_> = book.events.iter().map(|(_, kind, _)| *kind).collect();
        let at = |kind| kinds.iter().position(|known| *known == kind).unwrap();
        assert!(at(PostedKind::TurnStart) < at(PostedKind::Stream));
        assert!(at(PostedKind::Stream) < at(PostedKind::TurnEnd));
        let stream = book.of(PostedKind::Stream);
        assert_eq!(stream.last().unwrap()["value"]["type"], "result");
        assert!(book.notes().contains("a warning"), "{}", book.notes());
        let row = &book.rows[0];
        assert_eq!((row.kind, row.outcome.as_str()), (TurnKind::Mail, "ok"));
        assert_eq!(
            (row.model.as_str(), &row.messages[..]),
            ("haiku", &[MessageId(1)][..])
        );
        assert_eq!((row.context_tokens, row.window), (1_000, 200_000));
        assert_eq!(row.tools[0].name, "Read");
        let doing: Vec<_> = book.states.iter().map(|state| state.turn_state).collect();
        assert!(doing.contains(&TurnState::Thinking), "{doing:?}");
    });
    let prompt = &rig.prompts()[0];
    assert!(prompt.starts_with("Message 1 from bob"), "{prompt}");
    assert!(prompt.contains("\nhello there\n"), "{prompt}");
    assert_eq!(rig.cwds()[0], rig.path("state").canonicalize().unwrap());
    let argv = &rig.argvs()[0];
    assert!(
        argv.contains("--model haiku") && argv.contains("--continue"),
        "{argv}"
    );
    assert!(
        argv.contains("--tools Edit,Glob,Grep,Read,Write "),
        "{argv}"
    );
    assert!(
        argv.contains("--allowedTools Edit,Glob,Grep,Read,Write,mcp__hyperhive"),
        "{argv}"
    );
}

#[tokio::test]
async fn t2_t24_one_message_per_turn_and_the_rest_is_a_hint() {
    let rig = Rig::new();
    let ids = [rig.host.send("first"), rig.host.send("second")];
    rig.play(async { rig.host.turns_ended(2).await }).await;
    rig.host.look(|book| {
        let wanted = [
            Call::Leased(ids[0]),
            Call::Acked(vec![ids[0].0]),
            Call::Leased(ids[1]),
            Call::Acked(vec![ids[1].0]),
        ];
        assert_eq!(book.calls[..4], wanted);
        assert_eq!(book.of(PostedKind::TurnStart)[0]["unread"], 1);
        assert_ne!(book.turns[0], book.turns[1]);
    });
    let prompts = rig.prompts();
    assert!(
        prompts[0].contains("(1 more message is pending"),
        "{}",
        prompts[0]
    );
    assert!(!prompts[1].contains("pending"), "{}", prompts[1]);
}

#[tokio::test]
async fn t13_the_agent_goes_on_by_itself_once_per_wish() {
    let rig = Rig::new();
    let sentinel = rig.path("harness/hyperhive-continue");
    rig.script(&format!(
        "on hello\ninit\ntouch {}\nresult more\n",
        sentinel.display()
    ));
    rig.host.send("hello");
    rig.play(async {
        rig.host.turns_ended(2).await;
        // Were there a third turn of its own, it would come before this one.
        rig.host.send("later");
        rig.host.turns_ended(3).await;
    })
    .await;
    let prompts = rig.prompts();
    assert_eq!(prompts.len(), 3, "{prompts:?}");
    assert!(
        prompts[1].starts_with("A turn of your own"),
        "{}",
        prompts[1]
    );
    assert!(prompts[2].contains("later"), "{}", prompts[2]);
    assert!(!sentinel.exists(), "consumed");
    rig.host.look(|book| {
        let start = book.of(PostedKind::TurnStart)[1];
        assert_eq!(
            (&start["from"], &start["body"]),
            (&"self".into(), &"continue".into())
        );
        assert_eq!(
            book.calls[2],
            Call::Acked(vec![]),
            "no message of the broker's"
        );
        assert_eq!(book.rows[1].kind, TurnKind::Continue);
    });
}

#[tokio::test]
async fn t13_mail_that_waits_takes_the_place_of_the_wish() {
    let rig = Rig::new();
    let sentinel = rig.path("harness/hyperhive-continue");
    rig.script(&format!(
        "on hello\ninit\ntouch {}\nresult more\n",
        sentinel.display()
    ));
    rig.host.send("hello");
    rig.host.send("other");
    rig.play(async {
        rig.host.turns_ended(2).await;
        rig.host.send("third");
        rig.host.turns_ended(3).await;
    })
    .await;
    let prompts = rig.prompts();
    assert!(
        prompts[1].contains("other") && prompts[2].contains("third"),
        "{prompts:?}"
    );
}

#[tokio::test]
async fn t17_the_model_is_read_before_each_turn_and_the_operators_choice_stays() {
    let rig = Rig::new().with("HIVE_CONTEXT_WINDOW_TOKENS_OPUS", "1000000");
    rig.host.send("one");
    rig.play(async {
        rig.host.turns_ended(1).await;
        let bad = rig.host.ask(ControlAction::Model {
            name: "--evil".to_owned(),
        });
        assert!(!rig.host.answer(bad).await.ok);
        let good = rig.host.ask(ControlAction::Model {
            name: "opus-5".to_owned(),
        });
        assert!(rig.host.answer(good).await.ok);
        rig.host.send("two");
        rig.host.turns_ended(2).await;
    })
    .await;
    let argvs = rig.argvs();
    assert!(argvs[0].contains("--model haiku"), "{}", argvs[0]);
    assert!(argvs[1].contains("--model opus-5"), "{}", argvs[1]);
    let kept = fs::read_to_string(rig.path("harness/hyperhive-model")).unwrap();
    assert_eq!(kept, "opus-5\n");
    rig.host
        .look(|book| assert_eq!(book.states.last().unwrap().window, 1_000_000));
}

#[tokio::test]
async fn t19_a_new_session_is_for_exactly_one_turn() {
    let rig = Rig::new();
    rig.host.send("one");
    rig.play(async {
        rig.host.turns_ended(1).await;
        let wish = rig.host.ask(ControlAction::NewSession);
        assert!(rig.host.answer(wish).await.ok);
        for n in 2..=3 {
            rig.host.send("more");
            rig.host.turns_ended(n).await;
        }
    })
    .await;
    let is_continued: Vec<_> = rig
        .argvs()
        .iter()
        .map(|argv| argv.contains("--continue"))
        .collect();
    assert_eq!(is_continued, [true, false, true]);
}

#[tokio::test]
async fn t30_notes_reach_the_model_in_the_very_next_turn() {
    let rig = Rig::new();
    rig.script(&format!(
        "on hello\ninit\nraw {{\"type\":\"x\"}}\nawait {}\nresult\n",
        rig.path("go").display()
    ));
    rig.host.send("one");
    rig.play(async {
        rig.host.turns_ended(1).await;
        fs::write(rig.path("state/CLAUDE.md"), "Always answer in verse.").unwrap();
        rig.host.send("hello");
        rig.host
            .wait("second turn", |book| {
                book.of(PostedKind::TurnStart).len() == 2
            })
            .await;
        rig.host
            .wait("its first line", |book| {
                book.of(PostedKind::Stream)
                    .iter()
                    .any(|data| data["value"]["type"] == "x")
            })
            .await;
        let prompt = fs::read_to_string(rig.path("harness/claude-system-prompt.md")).unwrap();
        assert!(prompt.contains("Always answer in verse."));
        fs::write(rig.path("go"), "").unwrap();
        rig.host.turns_ended(2).await;
        rig.host.look(|book| assert_eq!(book.acks(), 2));
    })
    .await;
    let argv = &rig.argvs()[1];
    assert!(argv.contains("--system-prompt-snapshot off"), "{argv}");
}
