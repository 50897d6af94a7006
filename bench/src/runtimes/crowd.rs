//! Many agents that have nothing to do.

use std::{
    collections::HashMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use hive_wire::{
    AgentName,
    host::{AgentState, List, Runtime},
};
use serde::Serialize;

use super::{PATIENCE, first_turn, hive, spawn};
use crate::process::Usage;

/// How long what starting set off takes to die down.
const SETTLE: Duration = Duration::from_secs(5);

/// What idle agents cost.
#[derive(Debug, Serialize)]
pub(super) struct Crowd {
    pub(super) runtime: &'static str,
    pub(super) agents: usize,
    /// Memory of everything below the daemon and of itself, shared pages shared out, per agent.
    pub(super) pss_mb_each: f64,
    /// The daemon's part of it.
    pub(super) daemon_pss_mb: f64,
    /// Processor time of the daemon, in hundredths of one core.
    pub(super) daemon_cpu_percent: f64,
    /// The same of everything below it, for all agents together.
    pub(super) agents_cpu_percent: f64,
    pub(super) seconds: f64,
}

pub(super) async fn measure(kind: Runtime, agents: usize, idle: Duration) -> Result<Crowd> {
    let hive = hive().await?;
    let host = hive.host_client();
    for number in 0..agents {
        let name: AgentName = format!("a{number}").parse()?;
        spawn(&host, &name, kind).await?;
    }
    // An agent that has worked and waits for more; the others only wait.
    first_turn(&host, &"a0".parse()?).await?;
    let until = Instant::now() + PATIENCE;
    loop {
        let rows = host.call(&List {}).await?.agents;
        let starting = rows
            .iter()
            .filter(|row| row.state != AgentState::Idle)
            .count();
        if starting == 0 || Instant::now() > until {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    tokio::time::sleep(SETTLE).await;
    let daemon = hive.pid().context("the daemon runs")?;
    let below = descendants(daemon)?;
    let (own, all) = (Usage::of(daemon)?, cpu_of(&below));
    tokio::time::sleep(idle).await;
    let seconds = idle.as_secs_f64();
    let percent = |time: Duration| time.as_secs_f64() / seconds * 100.0;
    let daemon_cpu_percent = percent(Usage::of(daemon)?.cpu.saturating_sub(own.cpu));
    let agents_cpu_percent = percent(cpu_of(&below).saturating_sub(all));
    let daemon_pss = pss(daemon);
    let total = daemon_pss + below.iter().copied().map(pss).sum::<u64>();
    Ok(Crowd {
        runtime: kind.as_str(),
        agents,
        pss_mb_each: total as f64 / agents as f64 / 1e6,
        daemon_pss_mb: daemon_pss as f64 / 1e6,
        daemon_cpu_percent,
        agents_cpu_percent,
        seconds,
    })
}

fn cpu_of(processes: &[u32]) -> Duration {
    let usages = processes.iter().filter_map(|pid| Usage::of(*pid).ok());
    usages.map(|usage| usage.cpu).sum()
}

/// The memory of a process with shared pages shared out, in bytes; nothing for one that is gone.
fn pss(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

fn descendants(of: u32) -> Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest);
        let parent = fields.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut todo) = (Vec::new(), vec![of]);
    while let Some(pid) = todo.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child);
            todo.push(child);
        }
    }
    Ok(found)
}
