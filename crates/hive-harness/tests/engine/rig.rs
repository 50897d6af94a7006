//! An engine on a directory of its own.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use hive_harness::engine::{
    AttemptId, Ended, Engine, EngineEvent, EngineFiles, Options, Purpose, SessionChoice, Timers,
    Turn, TurnSpec,
    command::{EngineCommand, environment},
    outcome::{TurnOutcome, classify},
};
use hive_testkit::waiting::until;
use serde_json::Value;
use tempfile::TempDir;

/// The two ways of running an engine. Most tests run over both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    PerTurn,
    Warm,
}

/// Both.
pub(crate) const WAYS: [Way; 2] = [Way::PerTurn, Way::Warm];

/// A fake engine and a place for it.
pub(crate) struct Rig {
    dir: TempDir,
    pub(crate) command: EngineCommand,
    pub(crate) options: Options,
}

impl Rig {
    pub(crate) fn new(way: Way) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| OsString::from(dir.path().join(name));
        for name in ["settings.json", "mcp.json", "system.md"] {
            fs::write(dir.path().join(name), "{}").expect("a file");
        }
        for name in ["state", "claude"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let configured = [
            ("FAKE_ENGINE_RECORD".into(), path("record.jsonl")),
            ("FAKE_ENGINE_SCRIPT".into(), path("script")),
            ("CLAUDE_CONFIG_DIR".into(), path("claude")),
        ];
        let program = hive_testkit::engine::fake_engine().expect("the fake engine");
        let mut command = EngineCommand::new(program, dir.path().join("state"));
        command.env = environment([], &configured);
        let options = Options {
            timers: Timers::default(),
            linger: match way {
                Way::PerTurn => Duration::ZERO,
                Way::Warm => Duration::from_secs(600),
            },
            guard: env!("CARGO_BIN_EXE_hive").into(),
        };
        Self {
            dir,
            command,
            options,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the fake engine does from now on.
    pub(crate) fn script(&self, script: &str) {
        fs::write(self.path("script"), script).expect("the script");
    }

    pub(crate) fn files(&self) -> EngineFiles {
        EngineFiles {
            settings: self.path("settings.json"),
            system_prompt: self.path("system.md"),
            mcp_config: self.path("mcp.json"),
        }
    }

    pub(crate) fn spec(&self, prompt: &str) -> TurnSpec {
        TurnSpec {
            attempt: AttemptId::fresh(),
            purpose: match prompt {
                "/compact" => Purpose::Compact,
                _ => Purpose::Mail,
            },
            prompt: prompt.to_owned(),
            session: SessionChoice::Continue,
            model: "haiku".to_owned(),
            tools: vec!["Read".to_owned()],
            allowed_tools: vec!["Read".to_owned(), "mcp__hyperhive".to_owned()],
            files: self.files(),
        }
    }

    /// The engine, probed.
    pub(crate) async fn engine(&self) -> Engine {
        let profile = self.command.probe().await.expect("a usable engine");
        Engine::new(self.command.clone(), profile, self.options.clone())
    }

    /// Plays these steps in one turn and shuts the engine down.
    pub(crate) async fn play(&self, steps: &str) -> Ended {
        let mut engine = self.engine().await;
        let turn = engine.begin(self.spec(&fake(steps))).await.expect("a turn");
        let ended = turn.end().await;
        engine.shutdown().await;
        ended
    }

    /// What the fake engine wrote down: every line, in order.
    pub(crate) fn record(&self) -> Vec<Value> {
        let record = fs::read_to_string(self.path("record.jsonl")).unwrap_or_default();
        let lines = record
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect()
    }

    /// How many engine processes were started for turns.
    pub(crate) fn starts(&self) -> usize {
        self.record()
            .iter()
            .filter(|line| line.get("argv").is_some())
            .count()
    }

    /// The pid of the process with a session of its own that the engine started.
    pub(crate) fn child(&self) -> Option<u64> {
        self.record().iter().find_map(|line| line["child"].as_u64())
    }
}

/// A prompt that makes the fake engine play these steps, one per line.
pub(crate) fn fake(steps: &str) -> String {
    let lines = steps.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| format!("!fake {line}\n")).collect()
}

/// Runs one turn to its end.
pub(crate) async fn run(engine: &mut Engine, spec: TurnSpec) -> (Ended, TurnOutcome) {
    let ended = engine.begin(spec).await.expect("a turn").end().await;
    let outcome = classify(&ended);
    (ended, outcome)
}

/// Every event of a turn, and its end.
pub(crate) async fn watch(mut turn: Turn) -> (Vec<EngineEvent>, Ended) {
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    (events, turn.end().await)
}

/// Whether there is such a process, zombies left out.
pub(crate) fn is_running(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| state != "Z")
}

/// Waits for a file that the engine touches.
pub(crate) async fn touched(path: &Path) {
    until("a touched file", || path.exists()).await;
}
