//! Ending: a running turn is finished or given back, and nothing is left.

use std::time::Duration;

use hive_wire::{agent::RequeueReason, control::ControlAction, report::PostedKind};

use crate::{host::Call, rig::Rig};

#[tokio::test]
async fn a_turn_that_ends_within_the_grace_is_acked() {
    let rig = Rig::new();
    let go = rig.path("go");
    rig.script(&format!(
        "on hello\ninit\nsay x\nawait {}\nresult\n",
        go.display()
    ));
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        let stop = rig.host.ask(ControlAction::Stop);
        assert!(rig.host.answer(stop).await.ok);
        std::fs::write(&go, "").unwrap();
        rig.host.turns_ended(1).await;
        // `play` asks a second time, which grants no more grace: wait for the first to be done.
        rig.host
            .wait("stopping", |book| {
                book.of(PostedKind::State)
                    .last()
                    .is_some_and(|s| s["status"] == "stopping")
            })
            .await;
    })
    .await;
    rig.host
        .look(|book| assert_eq!(book.calls, [Call::Leased(id), Call::Acked(vec![id.0])]));
}

#[tokio::test]
async fn a_turn_that_does_not_is_given_back_uncounted() {
    let rig = Rig::new().with("HIVE_STOP_GRACE_SECS", "0");
    rig.script("on hello\ninit\nsay x\nchild\nhang\n");
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
    })
    .await;
    rig.host.look(|book| {
        let back = Call::Requeued(RequeueReason::Shutdown);
        assert_eq!(book.calls, [Call::Leased(id), back]);
        assert_eq!(book.of(PostedKind::TurnEnd)[0]["outcome"], "shutdown");
        assert_eq!(book.rows[0].outcome, "shutdown");
        assert!(book.parent.is_empty());
    });
    // A tool that were left behind would fail the test as a leak.
}

#[tokio::test]
async fn the_end_of_a_turn_is_said_even_when_there_is_no_grace() {
    let rig = Rig::new().with("HIVE_STOP_GRACE_SECS", "0");
    rig.script("on hello\ninit\nsay x\nhang\n");
    rig.host.be_slow(Duration::from_millis(200));
    let id = rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        rig.orders.stop();
    })
    .await;
    let back = Call::Requeued(RequeueReason::Shutdown);
    rig.host
        .look(|book| assert_eq!(book.calls, [Call::Leased(id), back]));
}

#[tokio::test]
async fn an_idle_harness_stops_at_once_and_leaves_no_open_turn() {
    let rig = Rig::new();
    rig.play(async {
        rig.host
            .wait("receive", |book| !book.turns.is_empty())
            .await;
    })
    .await;
    rig.host.look(|book| {
        assert_eq!(book.calls, [Call::Requeued(RequeueReason::Shutdown)]);
        assert_eq!(
            book.of(PostedKind::State).last().unwrap()["status"],
            "stopping"
        );
    });
}
