//! The runtimes suite: from `spawn` to an agent's first turn in each runtime, beside the bare tool,
//! and what many idle agents cost.
//!
//! A plain process is the floor: what a runtime adds to it is compared with what its bare tool takes
//! to run nothing. All of it happens in one run, in turns, because a busy machine is busy for all.

#![expect(clippy::print_stderr, reason = "progress, beside the report on stdout")]

mod bare;
mod crowd;
mod report;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hive_testkit::{
    engine::fake_engine,
    hive::{Options as HiveOptions, TestHive},
};
use hive_wire::{
    AgentName,
    agent::MessageState,
    client::Client,
    host::{AgentState, Destroy, LookUpReceipt, Runtime, SendAsOperator, Spawn, TryRuntimes},
};
use serde::Serialize;

use crate::{
    host::Host,
    options::Options,
    report as common,
    stats::median,
    targets::{Bound, Target, target},
};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a receipt is looked at: what a turn takes is known no better than this.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

#[derive(Debug, Serialize)]
struct RuntimeResults {
    schema: u32,
    suite: &'static str,
    host: Host,
    quick: bool,
    starts: Vec<Started>,
    crowds: Vec<crowd::Crowd>,
    targets: Vec<Target>,
    /// What was left out, and why.
    notes: Vec<String>,
}

/// What it takes until an agent works, in one runtime.
#[derive(Debug, Serialize)]
struct Started {
    runtime: &'static str,
    /// The median time from `spawn` until its process runs.
    spawn_ms: f64,
    /// The median time from `spawn` until the first turn has ended.
    first_turn_ms: f64,
    /// The median time of the bare tool to run `true`.
    bare_ms: Option<f64>,
    /// What it adds to a plain process, without what the bare tool takes.
    over_bare_ms: Option<f64>,
}

/// Runs the suite, prints it and saves it.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let rounds = if options.quick { 5 } else { 20 };
    let mut notes = Vec::new();
    let kinds = working(&mut notes).await?;
    let mut starts = Vec::new();
    for kind in kinds.iter().copied() {
        eprintln!("starts: {}", kind.as_str());
        starts.push(start_often(kind, rounds).await?);
    }
    let floor = starts.first().map_or(0.0, |first| first.first_turn_ms);
    for start in &mut starts {
        start.over_bare_ms = start.bare_ms.map(|bare| start.first_turn_ms - floor - bare);
    }
    let mut crowds = Vec::new();
    let agents = if options.quick { 20 } else { 200 };
    for kind in [Runtime::Process, Runtime::Bwrap] {
        if kinds.contains(&kind) {
            eprintln!("{agents} idle agents: {}", kind.as_str());
            crowds.push(crowd::measure(kind, agents, options.idle_time()).await?);
        }
    }
    let mut results = RuntimeResults {
        schema: 1,
        suite: "runtimes",
        host: Host::of(&std::env::temp_dir())?,
        quick: options.quick,
        starts,
        crowds,
        targets: Vec::new(),
        notes,
    };
    results.targets = results.judge();
    report::print(&results);
    common::save(&results, &options.results("runtimes")?)
}

impl RuntimeResults {
    fn judge(&self) -> Vec<Target> {
        let bwrap = self.starts.iter().find(|start| start.runtime == "bwrap");
        let mut targets = vec![target(
            "bwrap, spawn to first turn: ms over process and bare bwrap",
            Bound::AtMost(50.0),
            bwrap.and_then(|start| start.over_bare_ms),
        )];
        for crowd in &self.crowds {
            let (agents, kind) = (crowd.agents, crowd.runtime);
            targets.push(target(
                format!("{agents} idle agents, {kind}: PSS MB each"),
                Bound::AtMost(15.0),
                Some(crowd.pss_mb_each),
            ));
            targets.push(target(
                format!("{agents} idle agents, {kind}: CPU % of the daemon"),
                Bound::AtMost(1.0),
                Some(crowd.daemon_cpu_percent),
            ));
        }
        targets
    }
}

/// The runtimes that work here, the plain one first.
async fn working(notes: &mut Vec<String>) -> Result<Vec<Runtime>> {
    let hive = hive().await?;
    let states = hive
        .host_client()
        .call_within(&TryRuntimes {}, PATIENCE)
        .await?;
    let mut kinds = vec![Runtime::Process];
    for state in states.runtimes {
        if state.problem.is_empty() {
            kinds.push(state.runtime);
        } else {
            let name = state.runtime.as_str();
            notes.push(format!("{name} is left out: {}", state.problem));
        }
    }
    Ok(kinds)
}

/// A hive whose engine does nothing.
async fn hive() -> Result<TestHive> {
    let engine = fake_engine()?;
    let harness = engine.with_file_name("hive");
    ensure!(harness.is_file(), "there is no {}", harness.display());
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    TestHive::start_with(HiveOptions {
        config: format!(
            "[hive]\nroot_agent = \"\"\n[engine]\ndefault = \"{}\"\n[agents]\nnetwork = \"host\"\n",
            engine.display()
        ),
        env: vec![("HIVE_BIN".into(), text(&harness))],
    })
    .await
}

async fn start_often(kind: Runtime, rounds: usize) -> Result<Started> {
    let hive = hive().await?;
    let host = hive.host_client();
    let (mut spawns, mut turns, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let name: AgentName = "ada".parse()?;
        let begun = Instant::now();
        spawn(&host, &name, kind).await?;
        spawns.push(begun.elapsed());
        first_turn(&host, &name).await?;
        turns.push(begun.elapsed());
        let destroy = Destroy { name, purge: true };
        host.call_within(&destroy, PATIENCE).await?;
        bare.extend(bare::run(kind, hive.root())?);
    }
    let millis = |times: &[Duration]| median(times.iter().map(|time| time.as_secs_f64() * 1e3));
    Ok(Started {
        runtime: kind.as_str(),
        spawn_ms: millis(&spawns),
        first_turn_ms: millis(&turns),
        bare_ms: (!bare.is_empty()).then(|| millis(&bare)),
        over_bare_ms: None,
    })
}

async fn spawn(host: &Client, name: &AgentName, runtime: Runtime) -> Result<()> {
    let spawn = Spawn {
        runtime,
        ..Spawn::elsewhere(name.clone())
    };
    let row = host.call_within(&spawn, PATIENCE).await?;
    ensure!(row.state != AgentState::Failed, "{}", row.note);
    Ok(())
}

async fn first_turn(host: &Client, name: &AgentName) -> Result<()> {
    let send = SendAsOperator {
        to: name.to_string(),
        body: "hello".to_owned(),
        in_reply_to: None,
        key: None,
    };
    let message_id = host.call(&send).await?.message_id;
    let until = Instant::now() + PATIENCE;
    loop {
        let receipt = host.call(&LookUpReceipt { message_id }).await?;
        if receipt.state == MessageState::Acked {
            return Ok(());
        }
        ensure!(Instant::now() < until, "the first turn does not end");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
