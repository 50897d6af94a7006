//! T12, T21: what a turn's output says about tokens, cost, context and tools.

use std::path::Path;

use hive_harness::engine::{SessionChoice, facts::Tokens, outcome::TurnOutcome};

use crate::rig::{Rig, WAYS, Way, fake, run};

#[tokio::test]
async fn t12_cost_and_tokens_are_those_of_the_turn() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        let mut sessions = Vec::new();
        for _ in 0..3 {
            let steps = "init\ncontext 1200\ntool Read\ntool Read\ntool Edit\nsay x\nresult ok";
            let (ended, outcome) = run(&mut engine, rig.spec(&fake(steps))).await;
            assert_eq!(outcome, TurnOutcome::Ok);
            let facts = &ended.facts;
            assert!(
                (facts.cost_usd.expect("a cost") - 0.01).abs() < 1e-9,
                "{way:?} {facts:?}"
            );
            let tokens = Tokens {
                input: 1200,
                output: 5,
                ..Tokens::default()
            };
            assert_eq!(facts.tokens, tokens);
            assert_eq!(facts.context_tokens, Some(1200));
            let tools: Vec<_> = facts
                .tools_used
                .iter()
                .map(|(n, c)| (n.as_str(), *c))
                .collect();
            assert_eq!(tools, [("Edit", 1), ("Read", 2)]);
            sessions.push(facts.session_id.clone().expect("a session"));
        }
        assert!(
            sessions.iter().all(|session| *session == sessions[0]),
            "{way:?}"
        );
        let mut fresh = rig.spec("hello");
        fresh.session = SessionChoice::Fresh;
        let (ended, _) = run(&mut engine, fresh).await;
        assert_ne!(
            ended.facts.session_id.as_deref(),
            Some(&*sessions[0]),
            "T19, {way:?}"
        );
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn t12_without_figures_per_turn_the_cost_is_the_difference_of_totals() {
    let rig = Rig::new(Way::PerTurn);
    let mut engine = rig.engine().await;
    let mut costs = Vec::new();
    for (session, total) in [("a", 0.5), ("a", 0.75), ("b", 0.25), ("b", 0.25)] {
        let steps = format!(
            "raw {{\"type\":\"result\",\"session_id\":\"{session}\",\"total_cost_usd\":{total}}}"
        );
        let (ended, _) = run(&mut engine, rig.spec(&fake(&steps))).await;
        costs.push(ended.facts.cost_usd.expect("a cost"));
    }
    assert_eq!(costs, [0.5, 0.25, 0.25, 0.0]);
    engine.shutdown().await;
}

#[tokio::test]
async fn t12_the_real_cli_in_figures() {
    let rig = Rig::new(Way::PerTurn);
    let mut engine = rig.engine().await;
    let transcripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcripts");
    // Transcript, cost, input, output, context, tools, results.
    let cases = [
        ("h02-second", 0.016185, 5350, 9, Some(5350), "", 1),
        ("bg1", 0.050544, 16543, 61, Some(5739), "Bash", 2),
        ("c03-compact", 0.02184, 7095, 37, None, "", 1),
        ("h07-mcp", 0.057366, 0, 0, None, "mcp__hive__echo", 1),
    ];
    for (name, cost, input, output, context, tool, results) in cases {
        let file = transcripts.join(format!("{name}.jsonl"));
        let steps = fake(&format!("transcript {}\nexit 0", file.display()));
        let (ended, _) = run(&mut engine, rig.spec(&steps)).await;
        let facts = &ended.facts;
        let found = facts.cost_usd.expect("a cost");
        assert!((found - cost).abs() < 1e-6, "{name}: {found}");
        if input > 0 {
            assert_eq!(
                (facts.tokens.input, facts.tokens.output),
                (input, output),
                "{name}"
            );
            assert!(
                context.is_none() || facts.context_tokens == context,
                "{name}: {facts:?}"
            );
        }
        assert!(
            tool.is_empty() || facts.tools_used.contains_key(tool),
            "{name}: {facts:?}"
        );
        assert_eq!(facts.results, results, "{name}");
        assert!(facts.compact.done == name.contains("compact"), "{name}");
        assert_eq!(facts.context_window, Some(200_000), "{name}");
        assert_eq!(facts.engine_version.as_deref(), Some("2.1.325"), "{name}");
        assert_eq!(
            facts.mcp_servers,
            [("hive".to_owned(), "connected".to_owned())],
            "{name}"
        );
    }
    engine.shutdown().await;
}
