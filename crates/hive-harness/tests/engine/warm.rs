//! The warm engine: kept while there is work and no doubt, dropped otherwise.

use std::{fs, time::Duration};

use hive_harness::engine::{
    Exit, Purpose,
    outcome::{TurnOutcome, classify},
};
use hive_testkit::waiting::until;
use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, Way, fake, run, touched};

#[tokio::test]
async fn turns_share_a_process() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    for prompt in ["one", "two", "three"] {
        let (ended, outcome) = run(&mut engine, rig.spec(prompt)).await;
        assert!(outcome.is_success(), "{prompt}: {outcome:?}");
        assert_eq!(ended.exit, Exit::Alive);
        assert_eq!(ended.reused, prompt != "one");
        assert!(engine.is_warm());
    }
    assert_eq!(rig.starts(), 1);
    engine.shutdown().await;
    assert_eq!(
        rig.record().last().expect("a record")["exit"],
        0,
        "its stdin was closed"
    );
}

#[tokio::test]
async fn t21_upkeep_and_mail_never_share_a_process_and_each_is_told() {
    let order = [
        Purpose::Mail,
        Purpose::Continue,
        Purpose::Checkpoint,
        Purpose::Compact,
        Purpose::Continue,
        Purpose::Mail,
    ];
    for (way, told) in [
        (Way::PerTurn, &order.map(Purpose::as_str)[..]),
        (Way::Warm, &["mail", "checkpoint", "continue"]),
    ] {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        for purpose in order {
            let mut spec = rig.spec(match purpose {
                Purpose::Compact => "/compact",
                _ => "go on",
            });
            spec.purpose = purpose;
            let (_, outcome) = run(&mut engine, spec).await;
            assert!(outcome.is_success(), "{way:?} {purpose:?}: {outcome:?}");
        }
        engine.shutdown().await;
        let record = rig.record();
        let starts = record.iter().filter(|line| line.get("argv").is_some());
        let purposes: Vec<_> = starts
            .map(|start| start["env"]["HIVE_TURN_PURPOSE"].as_str().expect("a word"))
            .collect();
        assert_eq!(purposes, told, "{way:?}");
    }
}

#[tokio::test]
async fn a_result_belongs_to_the_turn_that_it_names() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    let foreign = r#"raw {"type":"result","is_error":false,"user_message_uuids":["another"]}"#;
    let steps = format!("init\n{foreign}\nerror 400 x api_error this one is mine");
    let (ended, outcome) = run(&mut engine, rig.spec(&fake(&steps))).await;
    assert!(matches!(outcome, TurnOutcome::Failed { .. }), "{ended:?}");
    // A process that answers what nobody asked is not used again.
    let (_, outcome) = run(&mut engine, rig.spec("next")).await;
    assert_eq!(outcome, TurnOutcome::Ok);
    assert_eq!(rig.starts(), 2);
    engine.shutdown().await;
}

#[tokio::test]
async fn a_turn_is_not_done_by_a_result_for_something_else() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    let foreign = r#"raw {"type":"result","is_error":false,"user_message_uuids":["another"]}"#;
    let steps = format!("init\n{foreign}\nexit 0");
    let (ended, outcome) = run(&mut engine, rig.spec(&fake(&steps))).await;
    assert_eq!(ended.exit, Exit::Code(0));
    assert!(matches!(outcome, TurnOutcome::Failed { .. }), "{ended:?}");
    engine.shutdown().await;
}

#[tokio::test]
async fn an_engine_that_names_nothing_runs_once_per_turn() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    for _ in 0..2 {
        let (ended, outcome) = run(&mut engine, rig.spec(&fake("unnamed\ninit\nresult ok"))).await;
        assert_eq!(outcome, TurnOutcome::Ok);
        assert_eq!(ended.exit, Exit::Code(0));
        assert!(!engine.is_warm());
    }
    assert_eq!(rig.starts(), 2);
    engine.shutdown().await;
}

#[tokio::test]
async fn any_doubt_means_a_new_process() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    let mut starts = 0;
    let mut expect_new = |what: &str, rig: &Rig| {
        starts += 1;
        assert_eq!(rig.starts(), starts, "{what}");
    };
    run(&mut engine, rig.spec("first")).await;
    expect_new("the first turn", &rig);

    let mut other = rig.spec("x");
    other.allowed_tools.push("Edit".to_owned());
    run(&mut engine, other.clone()).await;
    expect_new("other tools", &rig);

    fs::write(rig.path("system.md"), "changed").expect("a file");
    other = rig.spec(&fake("error 529 server_error api_error Overloaded"));
    run(&mut engine, other).await;
    expect_new("another system prompt", &rig);

    run(
        &mut engine,
        rig.spec(&fake("init\nresult ok\nsay and one thing more")),
    )
    .await;
    expect_new("an error", &rig);

    // It speaks after its turn is over: the door closes as soon as that is heard.
    until("it is not warm", || !engine.is_warm()).await;
    run(&mut engine, rig.spec("last")).await;
    expect_new("words out of turn", &rig);
    engine.shutdown().await;
}

#[tokio::test]
async fn an_idle_agent_keeps_none() {
    let mut rig = Rig::new(Way::Warm);
    rig.options.linger = Duration::from_millis(50);
    let mut engine = rig.engine().await;
    run(&mut engine, rig.spec("one")).await;
    until("the exit is recorded", || {
        rig.record().iter().any(|line| line.get("exit").is_some())
    })
    .await;
    assert!(!engine.is_warm());
    let (_, outcome) = run(&mut engine, rig.spec("two")).await;
    assert_eq!(outcome, TurnOutcome::Ok);
    assert_eq!(rig.starts(), 2);
    engine.shutdown().await;
}

#[tokio::test]
async fn one_that_does_not_leave_when_it_should_is_killed() {
    let mut rig = Rig::new(Way::Warm);
    rig.options.timers.interrupt_grace = Duration::from_millis(100);
    rig.options.timers.term_grace = Duration::from_millis(100);
    let mut engine = rig.engine().await;
    let steps = "stay\nignore INT TERM CONTROL\ninit\nresult ok";
    let (_, outcome) = run(&mut engine, rig.spec(&fake(steps))).await;
    assert_eq!(outcome, TurnOutcome::Ok);
    let pid = rig.record()[0]["pid"].as_u64().expect("a pid");
    engine.rest().await;
    assert!(!crate::rig::is_running(pid));
    engine.shutdown().await;
}

#[tokio::test]
async fn one_that_is_killed_between_turns_costs_no_turn() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    run(&mut engine, rig.spec("one")).await;
    let pid = rig.record()[0]["pid"].as_u64().expect("a pid");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it is idle");
    until("it is not warm", || !engine.is_warm()).await;
    let (ended, outcome) = run(&mut engine, rig.spec("two")).await;
    assert_eq!((outcome, ended.reused), (TurnOutcome::Ok, false));
    engine.shutdown().await;
}

#[tokio::test]
async fn one_that_dies_before_it_takes_a_prompt_is_not_the_prompts_fault() {
    let rig = Rig::new(Way::Warm);
    let mut engine = rig.engine().await;
    run(&mut engine, rig.spec("one")).await;
    let touch = rig.path("reached");
    let steps = format!("touch {}\ndie KILL", touch.display());
    let turn = engine.begin(rig.spec(&fake(&steps))).await.expect("a turn");
    touched(&touch).await;
    let ended = turn.end().await;
    assert!(ended.reused && ended.timeline.first_event.is_none());
    assert!(
        matches!(classify(&ended), TurnOutcome::Unavailable { .. }),
        "{ended:?}"
    );
    engine.shutdown().await;
}
