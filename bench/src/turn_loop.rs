//! The loop suite: what `hive serve` adds to an engine's own time.
//!
//! Each turn's times are taken inside the harness and come with its `turn_end` event; beside them
//! the same engine is run bare, with the same arguments, environment and prompt, in turns with the
//! loop. With the fake engine, which does nothing, and with the real `claude` on a rehearsed model.

#![expect(clippy::print_stderr, reason = "progress, beside the report on stdout")]

mod bare;
mod report;
mod results;
mod stage;

use std::time::Duration;

use anyhow::{Context as _, Result};
use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::{claude, engine::fake_engine};

use crate::{host::Host, options::Options, process::Usage, report as common};
use bare::Bare;
use results::{Burst, Idle, LoopResults, Settings, TurnCost};
use stage::{Engine, Stage, Way};

/// How many messages a burst has.
const BURST: usize = 20;
/// For what starting set off to die down.
const SETTLE: Duration = Duration::from_secs(2);
/// What the rehearsed model says to everything.
const MODEL: &str = "[[rule]]\nanswer.text = 'ok'";

/// Runs the suite, prints it and saves it.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let mut bench = Bench {
        turns: if options.quick { 40 } else { 200 },
        claude_turns: if options.quick { 4 } else { 10 },
        idle: options.idle_time(),
        notes: Vec::new(),
    };
    let model = Rehearsal::start(Scenario::parse("bench.toml", MODEL)?).await?;
    let mut engines = vec![Engine::fake(&fake_engine()?)];
    match claude::claude() {
        Some(program) => engines.push(Engine::claude(&program, &model.url())),
        None => bench.note("the real claude is left out: `scripts/setup.sh test` installs it"),
    }
    let (mut costs, mut bursts) = (Vec::new(), Vec::new());
    for engine in &engines {
        for way in [Way::Process, Way::Warm] {
            eprintln!("turns: {} {way}", engine.name);
            costs.push(bench.turns(engine, way).await?);
        }
        eprintln!("bursts: {}", engine.name);
        bursts.push(burst(engine).await?);
    }
    eprintln!("idle");
    let idle = bench.idle(&engines[0]).await?;
    let mut results = LoopResults {
        schema: 1,
        suite: "loop",
        host: Host::of(&std::env::temp_dir())?,
        settings: Settings {
            quick: options.quick,
        },
        turns: costs,
        bursts,
        idle,
        targets: Vec::new(),
        notes: bench.notes,
    };
    results.targets = results.judge();
    report::print(&results);
    common::save(&results, &options.results("loop")?)
}

struct Bench {
    turns: usize,
    claude_turns: usize,
    idle: Duration,
    notes: Vec<String>,
}

impl Bench {
    /// One turn after another, each after the one before is over; now and then the bare engine.
    async fn turns(&self, engine: &Engine, way: Way) -> Result<TurnCost> {
        let count = if engine.is_fake {
            self.turns
        } else {
            self.claude_turns
        };
        let mut stage = Stage::new(engine, way).await?;
        // The first turn makes the session, and the engine's pages warm.
        stage.turn().await.context("the first turn")?;
        let bare = match way {
            Way::Process => Some(Bare::like(&stage, engine).await?),
            // A warm engine has no process of its own to compare a turn with.
            Way::Warm => None,
        };
        let mut turns = Vec::with_capacity(count);
        let mut alone = Vec::new();
        for _ in 0..count {
            turns.push(stage.turn().await?);
            if let Some(bare) = &bare {
                alone.push(bare.run().await?);
            }
        }
        stage.stop().await?;
        Ok(TurnCost::of(engine.name, way, &turns, &alone))
    }

    async fn idle(&self, engine: &Engine) -> Result<Idle> {
        let mut stage = Stage::new(engine, Way::Process).await?;
        // An agent that has worked and waits for more.
        stage.turn().await?;
        tokio::time::sleep(SETTLE).await;
        let pid = stage.harness_pid()?;
        let before = Usage::of(pid)?;
        tokio::time::sleep(self.idle).await;
        let after = Usage::of(pid)?;
        let seconds = self.idle.as_secs_f64();
        stage.stop().await?;
        Ok(Idle {
            seconds,
            cpu_percent: (after.cpu - before.cpu).as_secs_f64() / seconds * 100.0,
            rss_mb: after.rss_bytes as f64 / 1e6,
            open_files: after.open_files,
        })
    }

    fn note(&mut self, text: &str) {
        eprintln!("note: {text}");
        self.notes.push(text.to_owned());
    }
}

/// The same burst both ways, each from a harness that has no engine yet.
async fn burst(engine: &Engine) -> Result<Burst> {
    let mut seconds = Vec::new();
    for way in [Way::Process, Way::Warm] {
        let mut stage = Stage::new(engine, way).await?;
        seconds.push(stage.burst(BURST).await?.as_secs_f64());
        stage.stop().await?;
    }
    Ok(Burst {
        engine: engine.name,
        messages: BURST,
        process_s: seconds[0],
        warm_s: seconds[1],
        ratio: seconds[1] / seconds[0],
    })
}
