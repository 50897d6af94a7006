//! T4, T17, T19: how a turn is started, over both ways.

use std::ffi::OsString;

use hive_harness::engine::{Exit, SessionChoice, outcome::TurnOutcome};

use crate::rig::{Rig, WAYS, Way, fake, run};

#[tokio::test]
async fn t4_the_prompt_goes_in_by_stdin_whatever_it_holds() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let prompts = [
            "hello\nwith \"quotes\", é😀 and \u{1b}[31m\u{0}".to_owned(),
            "a much longer prompt than any pipe holds ".repeat(100_000),
        ];
        for prompt in &prompts {
            let (_, outcome) = run(&mut engine, rig.spec(prompt)).await;
            assert_eq!(outcome, TurnOutcome::Ok);
        }
        let record = rig.record();
        let seen: Vec<_> = record
            .iter()
            .filter_map(|line| line["prompt"].as_str())
            .collect();
        assert_eq!(seen, prompts, "{way:?}");
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn t4_an_engine_that_ends_without_reading_is_no_trouble() {
    let mut rig = Rig::new(Way::PerTurn);
    rig.command
        .env
        .push(("FAKE_ENGINE_LACKS".into(), "--nothing".into()));
    let mut engine = rig.engine().await;
    // A flag that it does not take makes it end before it reads anything.
    rig.command.args = vec!["--no-such-flag".into()];
    let mut broken = hive_harness::engine::Engine::new(
        rig.command.clone(),
        engine.profile().clone(),
        rig.options.clone(),
    );
    let (ended, outcome) = run(&mut broken, rig.spec(&"x".repeat(1_000_000))).await;
    assert_eq!(ended.exit, Exit::Code(1));
    let TurnOutcome::Failed { why } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("unknown option '--no-such-flag'"), "{why}");
    let (_, outcome) = run(&mut engine, rig.spec("hello")).await;
    assert_eq!(outcome, TurnOutcome::Ok);
    engine.shutdown().await;
    broken.shutdown().await;
}

#[tokio::test]
async fn t4_t17_t19_directory_environment_and_flags_are_as_configured() {
    for way in WAYS {
        let mut rig = Rig::new(way);
        rig.command
            .env
            .push((OsString::from("EXTRA"), OsString::from("yes")));
        let mut engine = rig.engine().await;
        let mut fresh = rig.spec("one");
        fresh.session = SessionChoice::Fresh;
        fresh.model = "opus".to_owned();
        run(&mut engine, fresh).await;
        run(&mut engine, rig.spec("two")).await;
        engine.shutdown().await;

        let record = rig.record();
        let starts: Vec<_> = record
            .iter()
            .filter(|line| line.get("argv").is_some())
            .collect();
        assert_eq!(starts.len(), 2, "{way:?}: another model is another process");
        let has = |at: usize, words: &[&str]| {
            let argv = starts[at]["argv"].as_array().expect("a list");
            let argv: Vec<_> = argv.iter().filter_map(|word| word.as_str()).collect();
            argv.windows(words.len()).any(|part| part == words)
        };
        assert!(
            has(0, &["--model", "opus"]) && !has(0, &["--continue"]),
            "T19"
        );
        assert!(has(1, &["--model", "haiku"]) && has(1, &["--continue"]));
        assert!(has(1, &["--tools", "Read"]) && has(1, &["--setting-sources", ""]));
        assert_eq!(has(1, &["--input-format", "stream-json"]), way == Way::Warm);
        let state = rig.path("state").canonicalize().expect("the directory");
        assert_eq!(starts[1]["cwd"].as_str(), state.to_str());
        let env = starts[1]["env"].as_object().expect("an object");
        assert_eq!(env["EXTRA"], "yes");
        assert_eq!(env["CLAUDE_CODE_MAX_RETRIES"], "2");
        let leaked = ["CARGO_MANIFEST_DIR", "RUST_BACKTRACE", "NEXTEST"];
        assert!(
            leaked.iter().all(|name| !env.contains_key(*name)),
            "{way:?}: {env:?}"
        );
    }
}

#[tokio::test]
async fn one_turn_after_another_never_two_processes_at_once() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        for n in 0..10 {
            let steps = if n % 3 == 0 {
                "result x\nexit 1"
            } else {
                "init\nresult ok"
            };
            run(&mut engine, rig.spec(&fake(steps))).await;
        }
        engine.shutdown().await;
        let mut running = 0;
        for line in rig.record() {
            if line.get("argv").is_some() {
                running += 1;
            }
            if line.get("exit").is_some() {
                running -= 1;
            }
            assert!((0..=1).contains(&running), "{way:?}: {:?}", rig.record());
        }
        assert_eq!(running, 0, "{way:?}");
    }
}
