//! How turns are ended: timers, interrupts, kills of everything that an engine started.

use std::time::Duration;

use hive_harness::engine::{
    Exit, Stopped,
    outcome::{TurnOutcome, classify},
};
use hive_testkit::waiting::until;

use crate::rig::{Rig, WAYS, Way, fake, is_running, run, touched};

/// Short enough for a test, long enough for a busy machine to start an engine in.
const SHORT: Duration = Duration::from_millis(400);

/// Steps that start a child with a session of its own and say when that is done.
fn with_child(rig: &Rig, then: &str) -> String {
    format!("init\nchild\ntouch {}\n{then}", rig.path("ready").display())
}

#[tokio::test]
async fn silence_is_ended_with_everything_that_was_started() {
    for way in WAYS {
        let mut rig = Rig::new(way);
        rig.options.timers.silence = SHORT;
        rig.options.timers.term_grace = SHORT;
        let ended = rig
            .play(&with_child(&rig, "ignore INT TERM CONTROL\nhang"))
            .await;
        assert_eq!(ended.stopped, Some(Stopped::Silent), "{way:?}");
        assert_eq!(ended.exit, Exit::Signal(9));
        let TurnOutcome::Failed { why } = classify(&ended) else {
            panic!("{way:?}: {ended:?}");
        };
        assert!(why.contains("printed nothing"), "{why}");
        assert!(!is_running(rig.child().expect("a child")), "{way:?}");
    }
}

#[tokio::test]
async fn silence_while_the_api_is_out_of_order_is_the_apis() {
    let mut rig = Rig::new(Way::PerTurn);
    rig.options.timers.silence = SHORT;
    let retry =
        r#"raw {"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"}"#;
    let ended = rig.play(&format!("init\n{retry}\nhang")).await;
    assert_eq!(ended.stopped, Some(Stopped::Silent));
    assert!(
        matches!(classify(&ended), TurnOutcome::Unavailable { .. }),
        "{ended:?}"
    );
}

#[tokio::test]
async fn an_engine_that_goes_on_printing_is_not_silent() {
    for way in WAYS {
        let mut rig = Rig::new(way);
        // Long beside a pause, on a busy machine too, and short beside all of them.
        rig.options.timers.silence = Duration::from_secs(3);
        let steps = "say x\nsleep 100\n".repeat(35) + "result ok";
        let ended = rig.play(&steps).await;
        assert_eq!(
            classify(&ended),
            TurnOutcome::Ok,
            "{way:?}: {:?}",
            ended.stopped
        );
    }
}

#[tokio::test]
async fn an_engine_that_stays_after_its_result_is_killed_and_the_turn_is_good() {
    let mut rig = Rig::new(Way::PerTurn);
    rig.options.timers.result_to_exit = SHORT;
    rig.options.timers.term_grace = SHORT;
    let steps = with_child(&rig, "stay\nignore INT TERM\nresult ok");
    let ended = rig.play(&steps).await;
    assert_eq!(ended.stopped, Some(Stopped::Lingered));
    assert_eq!(classify(&ended), TurnOutcome::Ok);
    assert!(!is_running(rig.child().expect("a child")));
}

#[tokio::test]
async fn what_an_engine_leaves_behind_ends_with_its_turn() {
    let rig = Rig::new(Way::PerTurn);
    // The child holds the pipes open: the turn ends all the same.
    let ended = rig.play(&with_child(&rig, "result ok")).await;
    assert_eq!((ended.exit, ended.stopped), (Exit::Code(0), None));
    assert_eq!(classify(&ended), TurnOutcome::Ok);
    assert!(!is_running(rig.child().expect("a child")));
}

#[tokio::test]
async fn an_interrupt_lets_the_engine_say_so() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let spec = rig.spec(&fake(&with_child(&rig, "hang")));
        let turn = engine.begin(spec).await.expect("a turn");
        touched(&rig.path("ready")).await;
        turn.handle().interrupt();
        let ended = turn.end().await;
        assert_eq!(ended.stopped, Some(Stopped::Interrupted), "{way:?}");
        let result = ended.facts.result.as_ref().expect("a result");
        assert_eq!(result.terminal_reason.as_deref(), Some("aborted_streaming"));
        assert_eq!(classify(&ended), TurnOutcome::Interrupted, "{way:?}");
        let (_, next) = run(&mut engine, rig.spec("next")).await;
        assert_eq!(
            next,
            TurnOutcome::Ok,
            "{way:?}: the turn after an interrupt is as any other"
        );
        assert!(!is_running(rig.child().expect("a child")), "{way:?}");
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn an_interrupt_that_is_ignored_becomes_a_kill() {
    for way in WAYS {
        let mut rig = Rig::new(way);
        rig.options.timers.interrupt_grace = SHORT;
        rig.options.timers.term_grace = SHORT;
        let mut engine = rig.engine().await;
        let steps = format!("ignore INT TERM CONTROL\n{}", with_child(&rig, "hang"));
        let turn = engine.begin(rig.spec(&fake(&steps))).await.expect("a turn");
        touched(&rig.path("ready")).await;
        let handle = turn.handle();
        for _ in 0..10 {
            handle.interrupt();
        }
        let ended = turn.end().await;
        assert_eq!(
            (ended.exit, ended.stopped),
            (Exit::Signal(9), Some(Stopped::Interrupted))
        );
        assert_eq!(classify(&ended), TurnOutcome::Interrupted, "{way:?}");
        assert!(!is_running(rig.child().expect("a child")), "{way:?}");
        handle.interrupt();
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn shutting_down_ends_a_running_turn() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let spec = rig.spec(&fake(&with_child(&rig, "hang")));
        let turn = engine.begin(spec).await.expect("a turn");
        touched(&rig.path("ready")).await;
        engine.shutdown().await;
        let ended = turn.end().await;
        assert_eq!(
            (ended.exit, ended.stopped),
            (Exit::Signal(15), Some(Stopped::ShutDown))
        );
        assert_eq!(classify(&ended), TurnOutcome::Interrupted, "{way:?}");
        assert!(!is_running(rig.child().expect("a child")), "{way:?}");
    }
}

#[tokio::test]
async fn a_turn_that_is_dropped_is_ended_before_the_next_begins() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let spec = rig.spec(&fake(&with_child(&rig, "hang")));
        let turn = engine.begin(spec).await.expect("a turn");
        touched(&rig.path("ready")).await;
        drop(turn);
        // Another model needs another process, which waits for the end of this one.
        let mut next = rig.spec("next");
        next.model = "opus".to_owned();
        let (_, outcome) = run(&mut engine, next).await;
        assert_eq!(outcome, TurnOutcome::Ok, "{way:?}");
        assert!(!is_running(rig.child().expect("a child")), "{way:?}");
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn a_killed_engine_is_a_failed_turn_and_nothing_stays() {
    for way in WAYS {
        let rig = Rig::new(way);
        let ended = rig.play(&with_child(&rig, "die KILL")).await;
        assert_eq!(
            (ended.exit, ended.stopped),
            (Exit::Signal(9), None),
            "{way:?}"
        );
        assert!(
            matches!(classify(&ended), TurnOutcome::Failed { .. }),
            "{way:?}"
        );
        let child = rig.child().expect("a child");
        until("the child is gone", || !is_running(child)).await;
    }
}
