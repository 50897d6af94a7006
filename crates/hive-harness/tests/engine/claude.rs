//! The real `claude`, run as the harness runs it, over both ways, against the rehearsal model.
//!
//! Without one these tests say that they are skipped (`hive_testkit::claude`).

use std::{ffi::OsString, fs};

use hive_harness::engine::{
    Engine, Exit, Stopped,
    command::environment,
    outcome::{TurnOutcome, classify},
};
use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::waiting::until;

use crate::rig::{Rig, WAYS, Way, is_running, run};

/// A rig with the real engine and a model that follows these rules.
struct Stage {
    rig: Rig,
    model: Rehearsal,
    engine: Engine,
}

impl Stage {
    async fn new(way: Way, rules: &str) -> Option<Self> {
        let binary = hive_testkit::claude::claude()?;
        let scenario = Scenario::parse("test", rules).expect("a scenario");
        let model = Rehearsal::start(scenario).await.expect("a model");
        let mut rig = Rig::new(way);
        let home = rig.path("home");
        fs::create_dir(&home).expect("a directory");
        fs::write(rig.path("settings.json"), r#"{"autoCompactEnabled":false}"#).expect("a file");
        fs::write(rig.path("mcp.json"), r#"{"mcpServers":{}}"#).expect("a file");
        fs::write(rig.path("system.md"), "You are ada, an agent.\n").expect("a file");
        let var = |name: &str, value: OsString| (OsString::from(name), value);
        let path = std::env::var_os("PATH").expect("a PATH");
        rig.command.program = binary;
        rig.command.env = environment(
            [],
            &[
                var("PATH", path),
                var("HOME", home.clone().into()),
                var("TMPDIR", home.into()),
                var("CLAUDE_CONFIG_DIR", rig.path("claude").into()),
                var("ANTHROPIC_API_KEY", "sk-ant-api03-dummy".into()),
                var("ANTHROPIC_BASE_URL", model.url().into()),
                var("CLAUDE_CODE_MAX_RETRIES", "0".into()),
            ],
        );
        let engine = rig.engine().await;
        Some(Self { rig, model, engine })
    }

    async fn turn(&mut self, prompt: &str) -> (hive_harness::engine::Ended, TurnOutcome) {
        let mut spec = self.rig.spec(prompt);
        spec.model = "claude-sonnet-4-5".to_owned();
        run(&mut self.engine, spec).await
    }

    async fn strike(self) {
        self.engine.shutdown().await;
        self.model.stop().await;
    }
}

const LOOK: &str = r#"
[[rule]]
when = { step = 0, last_user = "look" }
answer.tools = [{ name = "Read", input = { file_path = "{{cwd}}/note.txt" } }]
[[rule]]
answer.text = "I heard: {{last_user}}"
"#;

#[tokio::test]
async fn t19_turns_share_a_session_a_tool_is_used_and_a_compaction_is_one() {
    for way in WAYS {
        let Some(mut stage) = Stage::new(way, LOOK).await else {
            return;
        };
        fs::write(stage.rig.path("state/note.txt"), "a note").expect("a file");
        let (first, outcome) = stage.turn("hello").await;
        assert_eq!(outcome, TurnOutcome::Ok, "{way:?}: {first:?}");
        assert_eq!(first.facts.engine_version.as_deref(), Some("2.1.325"));
        let (second, outcome) = stage.turn("look").await;
        assert_eq!(outcome, TurnOutcome::Ok, "{way:?}: {second:?}");
        assert_eq!(second.facts.tools_used["Read"], 1);
        assert_eq!(first.facts.session_id, second.facts.session_id);
        assert!(second.facts.context_tokens > Some(100));
        let (compact, outcome) = stage.turn("/compact").await;
        assert_eq!(outcome, TurnOutcome::Compacted, "{way:?}: {compact:?}");
        let (last, outcome) = stage.turn("still there?").await;
        assert_eq!(outcome, TurnOutcome::Ok, "{way:?}: {last:?}");
        assert_eq!(last.facts.session_id, first.facts.session_id);
        // Each turn costs what it costs, though the CLI counts on.
        let cost = |ended: &hive_harness::engine::Ended| ended.facts.cost_usd.expect("a cost");
        let total = last.facts.total_cost_usd.expect("a total");
        let sum = cost(&first) + cost(&second) + cost(&compact) + cost(&last);
        assert!((sum - total).abs() < 1e-6, "{way:?}: {sum} and {total}");
        let alive = way == Way::Warm;
        assert_eq!(last.exit == Exit::Alive, alive);
        assert_eq!(stage.engine.is_warm(), alive);
        assert_eq!(second.reused, alive, "one process served both turns");
        stage.strike().await;
    }
}

#[tokio::test]
async fn t6_t7_t20_errors_of_the_api_are_understood() {
    let rules = r#"
[[rule]]
when = { request = "any", last_user = "too long" }
fault = "prompt_too_long"
[[rule]]
when = { request = "any", last_user = "bad key" }
fault = "unauthorized"
[[rule]]
when = { request = "any", last_user = "limit" }
fault = { kind = "rate_limit", retry_after_secs = 120 }
[[rule]]
when = { request = "any", last_user = "busy" }
fault = "overloaded"
[[rule]]
when = { request = "any", last_user = "refuse" }
fault = { kind = "refused", connections = 1 }
[[rule]]
answer.text = "429 rate_limit_error, Prompt is too long, authentication_failed"
"#;
    for way in WAYS {
        for (prompt, word) in [
            ("too long", "too_long"),
            ("bad key", "auth_failed"),
            ("limit", "rate_limited"),
            ("busy", "unavailable"),
            ("refuse", "unavailable"),
            ("hello", "ok"),
        ] {
            let Some(mut stage) = Stage::new(way, rules).await else {
                return;
            };
            let (ended, outcome) = stage.turn(prompt).await;
            assert_eq!(outcome.word(), word, "{way:?}, {prompt}: {ended:?}");
            stage.strike().await;
        }
    }
}

#[tokio::test]
async fn an_interrupt_breaks_off_a_stream_that_hangs_and_the_next_turn_runs() {
    let rules = r#"
[[rule]]
when = { last_user = "hang" }
times = 1
fault = { kind = "stall" }
[[rule]]
answer.text = "fine"
"#;
    for way in WAYS {
        let Some(mut stage) = Stage::new(way, rules).await else {
            return;
        };
        let mut spec = stage.rig.spec("hang");
        spec.model = "claude-sonnet-4-5".to_owned();
        let turn = stage.engine.begin(spec).await.expect("a turn");
        stage.model.wait_for_requests(1).await.expect("a request");
        turn.handle().interrupt();
        let ended = turn.end().await;
        assert_eq!(ended.stopped, Some(Stopped::Interrupted));
        assert_eq!(
            classify(&ended),
            TurnOutcome::Interrupted,
            "{way:?}: {ended:?}"
        );
        let (ended, outcome) = stage.turn("hello").await;
        assert_eq!(outcome, TurnOutcome::Ok, "{way:?}: {ended:?}");
        stage.strike().await;
    }
}

#[tokio::test]
async fn a_kill_reaches_what_the_bash_tool_started() {
    let rules = r#"
[[rule]]
when.step = 0
answer.tools = [{ name = "Bash", input = { command = "echo $$ > pid; exec tail -f /dev/null", timeout = 600000 } }]
[[rule]]
answer.text = "done"
"#;
    for way in WAYS {
        let Some(mut stage) = Stage::new(way, rules).await else {
            return;
        };
        let mut spec = stage.rig.spec("run something");
        spec.model = "claude-sonnet-4-5".to_owned();
        spec.tools = vec!["Bash".to_owned()];
        spec.allowed_tools = vec!["Bash".to_owned()];
        let turn = stage.engine.begin(spec).await.expect("a turn");
        let file = stage.rig.path("state/pid");
        let pid = || fs::read_to_string(&file).ok()?.trim().parse::<u64>().ok();
        until("a child", || pid().is_some()).await;
        let pid = pid().expect("a pid");
        assert!(is_running(pid));
        drop(turn);
        stage.engine.rest().await;
        assert!(!is_running(pid), "{way:?}: the tool outlived its turn");
        stage.strike().await;
    }
}
