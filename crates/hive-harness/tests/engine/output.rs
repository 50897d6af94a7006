//! T5: whatever an engine prints is survived, shown and understood.

use std::time::Duration;

use hive_harness::engine::{
    EngineEvent,
    outcome::{TurnOutcome, classify},
};

use crate::rig::{Rig, WAYS, Way, fake, watch};

#[tokio::test]
async fn t5_stdout_is_shown_as_it_is_and_stderr_as_notes() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let seen = rig.path("seen");
        let steps = format!(
            "init\nraw {{\"type\": \"news\",  \"n\": 1.0}}\nraw plain\nstderr a note\n\
             await {}\nresult ok",
            seen.display()
        );
        let mut turn = engine.begin(rig.spec(&fake(&steps))).await.expect("a turn");
        let mut events = Vec::new();
        // The two streams are not ordered: the engine goes on when its complaint was heard.
        while let Some(event) = turn.next().await {
            if matches!(event, EngineEvent::Stderr(_)) {
                std::fs::write(&seen, "").expect("a file");
            }
            events.push(event);
        }
        let ended = turn.end().await;
        assert_eq!(classify(&ended), TurnOutcome::Ok);
        let shown = |wanted: &str| {
            events.iter().any(|event| match event {
                EngineEvent::Line(value) => value.get() == wanted,
                EngineEvent::Stray(text) | EngineEvent::Stderr(text) => text == wanted,
                EngineEvent::Oversize { .. } | EngineEvent::Gap { .. } => false,
            })
        };
        for wanted in ["{\"type\": \"news\",  \"n\": 1.0}", "plain", "a note"] {
            assert!(shown(wanted), "{way:?}: {wanted} in {events:?}");
        }
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn t5_garbage_long_lines_and_a_missing_newline_cost_nothing() {
    for steps in [
        "garbage\nresult ok",
        "init\nlong 50000000\nresult ok",
        "init\nlongresult 5000000",
        "unended {\"type\":\"result\",\"is_error\":false}",
        "result ok\ngarbage\nsay after the result\nstderr late",
    ] {
        let ended = Rig::new(Way::PerTurn).play(steps).await;
        assert_eq!(classify(&ended), TurnOutcome::Ok, "{steps}");
        assert_eq!(ended.facts.results, 1, "{steps}");
    }
    for steps in [
        "garbage\ninit\nresult ok",
        "init\nlong 5000000\nresult ok",
        "longresult 5000000",
    ] {
        let ended = Rig::new(Way::Warm).play(steps).await;
        assert_eq!(classify(&ended), TurnOutcome::Ok, "warm: {steps}");
    }
}

#[tokio::test]
async fn a_reader_that_never_reads_misses_events_and_nothing_else() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let steps = "init\nflood 5000\ntool Read\nresult ok";
        let mut turn = engine.begin(rig.spec(&fake(steps))).await.expect("a turn");
        // The turn gets to its end although nobody reads.
        let mut progress = turn.progress();
        let over = async { while progress.changed().await.is_ok() {} };
        over.await;
        let mut dropped = 0;
        let mut read = 0;
        while let Some(event) = turn.next().await {
            match event {
                EngineEvent::Gap { dropped: n } => dropped += n,
                _ => read += 1,
            }
        }
        let ended = turn.end().await;
        assert_eq!(classify(&ended), TurnOutcome::Ok, "{way:?}");
        assert_eq!(ended.facts.tools_used["Read"], 1);
        assert_eq!(
            read + dropped,
            5_004,
            "{way:?}: every event is shown or counted"
        );
        assert!(dropped > 0);
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn a_reader_that_keeps_up_misses_nothing() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let steps = "init\nflood 5000\nresult ok";
        let turn = engine.begin(rig.spec(&fake(steps))).await.expect("a turn");
        let (events, _) = watch(turn).await;
        assert_eq!(events.len(), 5_002, "{way:?}");
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn progress_tells_of_the_tool_that_runs() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let steps = "init\ncontext 777\ntool Read 600000\nresult ok";
        let turn = engine.begin(rig.spec(&fake(steps))).await.expect("a turn");
        let mut progress = turn.progress();
        let seen = progress.wait_for(|now| now.current_tool.is_some()).await;
        let seen = seen.expect("the turn runs").clone();
        assert_eq!(seen.current_tool.as_deref(), Some("Read"));
        assert_eq!(seen.context_tokens, Some(777));
        assert!(seen.session_id.is_some());
        turn.handle().interrupt();
        let ended = turn.end().await;
        assert_eq!(classify(&ended), TurnOutcome::Interrupted, "{way:?}");
        assert!(ended.timeline.first_event.is_some());
        assert!(ended.timeline.ended < Duration::from_secs(600));
        engine.shutdown().await;
    }
}
