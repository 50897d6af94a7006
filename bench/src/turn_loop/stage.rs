//! A hive with one agent, and turns through its harness.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, bail, ensure};
use hive_testkit::{engine::fake_engine, harness::Harness, hive::TestHive};
use hive_wire::{
    client::Client,
    host::{EventPosition, Events, SendAsOperator},
};
use serde::{Deserialize, Serialize};

/// How long a turn may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between turns, so that each begins at a loop that waits.
const PAUSE: Duration = Duration::from_millis(25);
const AGENT: &str = "ada";

/// Whether an engine stays between turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// One process per turn.
    Process,
    /// One process for all of them.
    Warm,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process => "one process per turn",
            Self::Warm => "warm",
        })
    }
}

/// An engine to be run.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
    pub(super) is_fake: bool,
    variables: Vec<(&'static str, String)>,
}

impl Engine {
    pub(super) fn fake(program: &Path) -> Self {
        Self {
            name: "fake engine",
            program: program.to_owned(),
            is_fake: true,
            variables: Vec::new(),
        }
    }

    /// The real one, with a key that opens nothing and a model on loopback.
    pub(super) fn claude(program: &Path, model: &str) -> Self {
        let variables = [
            ("ANTHROPIC_API_KEY", "sk-ant-dummy"),
            ("ANTHROPIC_BASE_URL", model),
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("HIVE_DEFAULT_MODEL", "claude-sonnet-4-5"),
        ];
        Self {
            name: "claude",
            program: program.to_owned(),
            is_fake: false,
            variables: variables
                .map(|(name, value)| (name, value.to_owned()))
                .into(),
        }
    }
}

/// What the loop says of one turn, in microseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Timing {
    pub(super) engine_us: u64,
    pub(super) total_us: u64,
    pub(super) spawned_at_us: u64,
}

/// One turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) timing: Timing,
    /// From just before the send until the prompt was on its way to an engine process.
    pub(super) send_to_spawn: Duration,
    /// From just before the send until the engine's own first moment, if it wrote that down.
    pub(super) send_to_engine: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) harness: Harness,
    hive: TestHive,
    host: Client,
    seen: EventPosition,
}

impl Stage {
    /// A harness that is up and waits for mail.
    pub(super) async fn new(engine: &Engine, way: Way) -> Result<Self> {
        let hive = TestHive::start().await?;
        let linger = match way {
            Way::Process => "0",
            Way::Warm => "600",
        };
        let mut harness = Harness::new(&hive, AGENT, &engine.program).await?;
        let record = harness.path("record").display().to_string();
        harness = harness
            .with("HIVE_ENGINE_ENV_FAKE_ENGINE_RECORD", record)
            .with("HIVE_ENGINE_LINGER_SECS", linger);
        for (name, value) in &engine.variables {
            harness = harness.with(name, value.as_str());
        }
        harness.start()?;
        let mut stage = Self {
            host: hive.host_client(),
            harness,
            hive,
            seen: EventPosition { epoch: 0, seq: 0 },
        };
        // The loop says its state when it has looked at its engine and takes mail.
        stage.wait_for("state", 1).await?;
        Ok(stage)
    }

    /// Sends a message to a loop that waits, and sees its turn through.
    pub(super) async fn turn(&mut self) -> Result<Measured> {
        tokio::time::sleep(PAUSE).await;
        let sent_at = unix_micros()?;
        self.send("a message").await?;
        let ends = self.wait_for("turn_end", 1).await?;
        let end = ends.first().context("one turn has ended")?;
        ensure!(end["ok"] == true, "a turn did not end well: {end}");
        let timing = Timing::deserialize(&end["timing"])?;
        let since = |moment: u64| Duration::from_micros(moment.saturating_sub(sent_at));
        let began = self.engine_began()?.filter(|moment| *moment >= sent_at);
        Ok(Measured {
            timing,
            send_to_spawn: since(timing.spawned_at_us),
            send_to_engine: began.map(since),
        })
    }

    /// When the last engine began, by its own record. The real one keeps none.
    fn engine_began(&self) -> Result<Option<u64>> {
        let record = self.harness.path("record");
        if !record.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(record)?;
        let mut starts = text.lines().rev().filter(|line| line.contains("\"at_us\""));
        let Some(last) = starts.next() else {
            return Ok(None);
        };
        let last: serde_json::Value = serde_json::from_str(last)?;
        Ok(last["at_us"].as_u64())
    }

    /// Sends so many messages at once; how long until the last turn is over.
    pub(super) async fn burst(&mut self, count: usize) -> Result<Duration> {
        let started = Instant::now();
        for number in 0..count {
            self.send(&format!("message {number}")).await?;
        }
        for end in self.wait_for("turn_end", count).await? {
            ensure!(end["ok"] == true, "a turn did not end well: {end}");
        }
        Ok(started.elapsed())
    }

    pub(super) fn root(&self) -> &Path {
        self.hive.root()
    }

    pub(super) fn harness_pid(&self) -> Result<u32> {
        self.harness.pid().context("the harness runs")
    }

    /// Ends harness and hive.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.harness.terminate().await?;
        self.hive.terminate().await
    }

    async fn send(&self, body: &str) -> Result<()> {
        let send = SendAsOperator {
            to: AGENT.to_owned(),
            body: body.to_owned(),
            in_reply_to: None,
            key: None,
        };
        self.host.call(&send).await?;
        Ok(())
    }

    /// Waits until so many further events of a kind have come, and gives their data.
    async fn wait_for(&mut self, kind: &str, count: usize) -> Result<Vec<serde_json::Value>> {
        let mut found = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while found.len() < count {
            let asked = Events {
                after: Some(self.seen),
                limit: Some(500),
                wait_seconds: 20,
                about: Some(AGENT.to_owned()),
            };
            let page = self.host.call_within(&asked, PATIENCE).await?;
            self.seen = page.next;
            let rows = page.events.into_iter().filter(|row| row.kind == kind);
            found.extend(rows.map(|row| row.data));
            if Instant::now() > deadline {
                bail!("no {kind} any more\n{}", self.harness.log_tail());
            }
        }
        Ok(found)
    }
}

/// The fake engine in place of another, to learn how that would be called.
pub(super) async fn rehearsed(engine: &Engine) -> Result<Stage> {
    let fake = Engine {
        name: engine.name,
        program: fake_engine()?,
        is_fake: true,
        variables: engine.variables.clone(),
    };
    Stage::new(&fake, Way::Process).await
}

fn unix_micros() -> Result<u64> {
    let since = SystemTime::UNIX_EPOCH.elapsed()?;
    Ok(u64::try_from(since.as_micros())?)
}
