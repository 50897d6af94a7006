//! The command line.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};

use crate::{peer::Kind, workload::cycle::Load};

/// One round's ratio wanders by an eighth; the median of so many by a twentieth.
const ROUNDS: usize = 11;

/// Side-by-side benchmarks of the hive against its peers.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// What to run.
    #[arg(value_enum, default_value = "all")]
    pub(crate) suite: Suite,
    /// A short run: fewer and shorter rounds, a smaller history.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The daemon under test; by default `hive-c0re` beside this program.
    #[arg(long, value_name = "PATH")]
    hive_bin: Option<PathBuf>,
    /// Measured seconds per peer, configuration and round.
    #[arg(long, value_name = "N")]
    seconds: Option<f64>,
    /// Only these peers, and only what compares them: for tuning.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    pub(crate) peers: Vec<Kind>,
    /// Only this load, such as `64x200` for 64 clients and bodies of 200 bytes: for tuning.
    #[arg(long, value_name = "CLIENTSxBYTES")]
    pub(crate) load: Option<Load>,
    /// How often each peer runs each configuration.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Where the peers keep their files while they run; a real disk. By default the target
    /// directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Where the results go, when it is one suite that runs.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Suite {
    /// Every suite, one after the other.
    All,
    /// The message queue against Redis, PostgreSQL, the disk and the socket.
    Queue,
    /// What the turn loop adds to an engine's own time.
    Loop,
    /// The native engine against claude, codex and gemini.
    Engine,
    /// Agents in each runtime against the bare tools, and many that are idle.
    Runtimes,
    /// A call of an agent's tool against a bare MCP server, and an agent under attack.
    Tools,
    /// The echo server of the ping-pong peer.
    #[value(hide = true)]
    Echo,
    /// The bare MCP server.
    #[value(hide = true)]
    McpEcho,
    /// The attacker.
    #[value(hide = true)]
    Attack,
}

impl Options {
    pub(crate) fn time(&self) -> Result<Duration> {
        let seconds = self.seconds.unwrap_or(if self.quick { 0.4 } else { 1.2 });
        ensure!(
            (0.1..=600.0).contains(&seconds),
            "--seconds is between 0.1 and 600"
        );
        Ok(Duration::from_secs_f64(seconds))
    }

    pub(crate) fn rounds(&self) -> usize {
        let rounds = if self.quick { 3 } else { ROUNDS };
        self.rounds.unwrap_or(rounds).max(1)
    }

    pub(crate) fn wake_samples(&self) -> u32 {
        if self.quick { 100 } else { 200 }
    }

    pub(crate) fn history(&self) -> u64 {
        if self.quick { 200_000 } else { 5_000_000 }
    }

    pub(crate) fn idle_time(&self) -> Duration {
        Duration::from_secs(if self.quick { 10 } else { 20 })
    }

    /// The daemon, as an absolute path: servers run in directories of their own.
    pub(crate) fn hive_bin(&self) -> Result<PathBuf> {
        match &self.hive_bin {
            Some(path) => Ok(std::path::absolute(path)?),
            None => Ok(binaries()?.join("hive-c0re")),
        }
    }

    pub(crate) fn dir(&self) -> Result<PathBuf> {
        match &self.dir {
            Some(dir) => Ok(std::path::absolute(dir)?),
            None => Ok(binaries()?
                .parent()
                .context("no target directory")?
                .to_owned()),
        }
    }

    /// `bench/results/SUITE.json` of the checkout that cargo runs, or of the current directory.
    pub(crate) fn results(&self, suite: &str) -> Result<PathBuf> {
        if let Some(file) = &self.out {
            ensure!(
                !matches!(self.suite, Suite::All),
                "--out is for one suite: name it"
            );
            return Ok(file.clone());
        }
        let bench = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| "bench".into(), PathBuf::from);
        ensure!(
            bench.is_dir(),
            "there is no bench/ here: say where the results go with --out"
        );
        Ok(bench.join(format!("results/{suite}.json")))
    }
}

/// Where this program and its siblings are built.
fn binaries() -> Result<PathBuf> {
    let program = env::current_exe()?;
    program
        .parent()
        .map(Path::to_owned)
        .context("this program has no directory")
}
