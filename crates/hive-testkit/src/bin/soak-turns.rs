//! The long campaign of turns: thousands of them, with faults and kills, checked at the end.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use anyhow::Context;
use clap::Parser;
use hive_testkit::turns::{TurnCampaign, check::check, log::Log};

/// Runs turns through harnesses with a fake engine, kills everything again and again, and proves
/// that no message was lost and none acked without a good turn.
#[derive(Parser)]
struct Args {
    /// How many messages are sent; each takes at least one turn.
    #[arg(long, default_value_t = 2_000)]
    turns: u64,
    /// How many of them make a wave; after each the hive is looked over while nothing is to be done.
    #[arg(long, default_value_t = 100)]
    wave: u64,
    /// What all decisions follow from; the time of day unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Writes what was seen to this file, clean or not.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Checks such a file of an earlier run instead.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(path) = &args.check {
        let report = check(&Log::read(path).with_context(|| path.display().to_string())?);
        say(&report.to_string());
        return Ok(verdict(report.is_clean()));
    }
    let seed = args.seed.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(1, |since| since.as_secs())
    });
    let campaign = TurnCampaign {
        seed,
        turns: args.turns,
        wave: args.wave.max(4),
    };
    say(&format!("seed {seed}: {} turns", campaign.turns));
    let started = Instant::now();
    let run = campaign.run(|settled, deaths| {
        let seconds = started.elapsed().as_secs();
        say(&format!("{settled} settled after {seconds} s: {deaths}"));
    });
    let mut finished = run.await.with_context(|| format!("seed {seed}"))?;
    if let Some(path) = &args.save {
        finished.log.write(path)?;
    }
    say(&format!("{}\n{}", finished.deaths, finished.report));
    if finished.report.is_clean() {
        return Ok(verdict(true));
    }
    let path = std::env::temp_dir().join(format!("hive-turns-{seed}.json"));
    finished.log.write(&path)?;
    let root = finished.hive.keep().await?;
    say(&format!(
        "seed {seed} broke promises.\nlog: {}\nhive: {}\nagain: soak-turns --check {}",
        path.display(),
        root.display(),
        path.display()
    ));
    Ok(verdict(false))
}

fn verdict(clean: bool) -> ExitCode {
    if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[expect(
    clippy::print_stdout,
    reason = "this is a command with something to say"
)]
fn say(line: &str) {
    println!("{line}");
}
