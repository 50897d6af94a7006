//! Credentials that do not work, and logins (T7–T9).

use std::{fs, os::unix::fs::PermissionsExt};

use hive_wire::{
    agent::RequeueReason,
    control::ControlAction,
    report::{HarnessStatus, PostedKind},
};

use crate::{host::Call, rig::Rig};

const UNAUTHORISED: &str = "init\nerror 401 authentication_failed api_error Invalid API key\n";

fn needs_login(rig: &Rig) -> impl Future<Output = ()> {
    rig.host.wait("parking", |book| {
        book.states
            .last()
            .is_some_and(|state| state.status == HarnessStatus::NeedsLoginIdle)
    })
}

#[tokio::test]
async fn t7_the_first_failure_is_retried_at_once() {
    let rig = Rig::new();
    rig.script(&format!("once on hello\n{UNAUTHORISED}"));
    let id = rig.host.send("hello");
    rig.play(async { rig.host.turns_ended(1).await }).await;
    let prompts = rig.prompts();
    assert_eq!(prompts.len(), 2);
    let repeat = format!("the same message {} as a moment ago", id.0);
    assert!(prompts[1].contains(&repeat), "{}", prompts[1]);
    rig.host.look(|book| {
        assert_eq!(book.calls[..2], [Call::Leased(id), Call::Acked(vec![id.0])]);
        assert!(
            book.of(PostedKind::State)
                .iter()
                .all(|s| s["status"] != "needs_login_idle")
        );
    });
    assert!(!rig.path("state/hyperhive-needs-login").exists());
}

#[tokio::test]
async fn t7_t8_the_second_parks_until_the_credentials_change() {
    let rig = Rig::new();
    rig.script(&format!(
        "once on hello\n{UNAUTHORISED}once on hello\n{UNAUTHORISED}"
    ));
    fs::write(rig.path("claude/.credentials.json"), "stale").unwrap();
    let id = rig.host.send("hello");
    let sentinel = rig.path("state/hyperhive-needs-login");
    rig.play(async {
        needs_login(&rig).await;
        rig.host.look(|book| {
            assert_eq!(
                book.calls,
                [Call::Leased(id), Call::Requeued(RequeueReason::Auth)]
            );
        });
        assert!(sentinel.exists());
        assert_eq!(rig.prompts().len(), 2, "one retry, and no more");

        fs::write(rig.path("claude/new-file"), "token").unwrap();
        rig.host.turns_ended(2).await;
    })
    .await;
    assert!(!sentinel.exists());
    rig.host.look(|book| {
        assert_eq!(
            book.calls[2..4],
            [Call::Leased(id), Call::Acked(vec![id.0])]
        );
        assert!(book.parent.is_empty());
    });
}

#[tokio::test]
async fn t8_a_restart_stays_parked_on_stale_credentials_and_goes_on_after_a_login() {
    let rig = Rig::new();
    rig.script(&format!("on never\n{UNAUTHORISED}"));
    fs::write(rig.path("claude/.credentials.json"), "stale").unwrap();
    let environment = rig.environment();
    let places = &environment.places;
    let sentinel =
        hive_harness::credentials::LoginSentinel::new(&places.state, &places.credentials);
    sentinel.set("401").unwrap();
    rig.host.send("hello");
    rig.play(async { needs_login(&rig).await }).await;
    rig.host
        .look(|book| assert!(book.calls.is_empty(), "no mail is taken: {:?}", book.calls));
    assert!(sentinel.is_set());

    // Somebody logged in while no harness ran.
    fs::write(rig.path("claude/another"), "token").unwrap();
    let again = Rig::new();
    let again = again
        .with("HIVE_STATE_DIR", rig.path("state").to_str().unwrap())
        .with("CLAUDE_CONFIG_DIR", rig.path("claude").to_str().unwrap());
    again.host.send("hello");
    again.play(async { again.host.turns_ended(1).await }).await;
    assert!(!sentinel.is_set());
}

/// A login command that asks for a code, as `claude auth login` does.
fn fake_login(rig: &Rig) -> String {
    let path = rig.path("login.sh");
    let script = "#!/bin/sh\necho 'visit https://example.invalid/login'\n\
        printf 'Paste code here > '\nread code\n\
        if [ \"$code\" = sesame ]; then echo welcome; exit 0; fi\necho 'wrong code' >&2\nexit 1\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn said(book: &crate::host::Book) -> String {
    let texts = book.of(PostedKind::Login).into_iter();
    texts.filter_map(|data| data["text"].as_str()).collect()
}

#[tokio::test]
async fn t9_a_login_from_afar_clears_the_sentinel_and_the_message_runs() {
    let rig = Rig::new();
    let command = fake_login(&rig);
    let rig = rig.with("HIVE_LOGIN_COMMAND", &command);
    rig.script(&format!(
        "once on hello\n{UNAUTHORISED}once on hello\n{UNAUTHORISED}"
    ));
    let id = rig.host.send("hello");
    rig.play(async {
        needs_login(&rig).await;
        let none = rig.host.ask(ControlAction::LoginInput {
            text: "x".to_owned(),
        });
        assert!(!rig.host.answer(none).await.ok, "no login runs");

        for (code, closing) in [("wrong", "[the login failed"), ("sesame", "[logged in]")] {
            let start = rig.host.ask(ControlAction::LoginStart);
            assert!(rig.host.answer(start).await.ok);
            rig.host
                .wait("prompt", |book| said(book).ends_with("Paste code here > "))
                .await;
            let twice = rig.host.ask(ControlAction::LoginStart);
            assert!(!rig.host.answer(twice).await.ok, "one at a time");
            let lines = rig.host.ask(ControlAction::LoginInput {
                text: "a\nb".to_owned(),
            });
            assert!(!rig.host.answer(lines).await.ok, "one line at a time");
            let input = rig.host.ask(ControlAction::LoginInput {
                text: code.to_owned(),
            });
            assert!(rig.host.answer(input).await.ok);
            rig.host
                .wait(closing, |book| said(book).contains(closing))
                .await;
        }
        rig.host.turns_ended(2).await;
    })
    .await;
    assert!(!rig.path("state/hyperhive-needs-login").exists());
    rig.host.look(|book| {
        assert!(said(book).contains("visit https://example.invalid/login"));
        assert!(said(book).contains("wrong code"));
        assert!(book.has(&Call::Acked(vec![id.0])));
    });
}

#[tokio::test]
async fn t9_a_login_can_be_given_up_and_ends_with_the_harness() {
    let rig = Rig::new().with("HIVE_LOGIN_COMMAND", "sleep 1000");
    rig.play(async {
        let start = rig.host.ask(ControlAction::LoginStart);
        assert!(rig.host.answer(start).await.ok);
        let cancel = rig.host.ask(ControlAction::LoginCancel);
        assert!(rig.host.answer(cancel).await.ok);
        rig.host
            .wait("end", |book| said(book).contains("given up"))
            .await;
        let again = rig.host.ask(ControlAction::LoginStart);
        assert!(rig.host.answer(again).await.ok);
    })
    .await;
    // A process that were left behind would fail the test as a leak.
}
