//! The long crash campaign: hundreds of kills, in rounds that are checked one by one.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context;
use clap::Parser;
use hive_testkit::{campaign::Campaign, checker::check, history::History};

/// Kills a hive's daemon again and again under load and proves that it kept its promises.
#[derive(Parser)]
struct Args {
    /// How often the daemon is killed.
    #[arg(long, default_value_t = 300)]
    kills: u32,
    /// How many kills make a round; each round has a hive and a check of its own.
    #[arg(long, default_value_t = 50)]
    round: u32,
    /// How many clients there are.
    #[arg(long, default_value_t = 32)]
    clients: u32,
    /// What all decisions follow from; the time of day unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Only kill from outside, for a daemon that was built without failpoints.
    #[arg(long)]
    no_failpoints: bool,
    /// Writes each round's history to this file, clean or not.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Checks a history file of an earlier run instead.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(path) = &args.check {
        let history = History::read(path).with_context(|| path.display().to_string())?;
        let report = check(&history);
        say(&report.to_string());
        return Ok(verdict(report.is_clean()));
    }
    let seed = args.seed.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(1, |since| since.as_secs())
    });
    say(&format!(
        "seed {seed}: {} kills, {} clients",
        args.kills, args.clients
    ));
    let mut done = 0;
    let mut round = 0;
    while done < args.kills {
        let kills = args.round.clamp(1, args.kills - done);
        let campaign = Campaign {
            clients: args.clients,
            // Every other round it also dies at ordered places.
            failpoints: !args.no_failpoints && round % 2 == 1,
            ..Campaign::new(seed.wrapping_add(round), kills)
        };
        if !one_round(&campaign, round, args.save.as_deref()).await? {
            return Ok(verdict(false));
        }
        done += kills;
        round += 1;
    }
    say(&format!("{done} kills in {round} rounds: no violation"));
    Ok(verdict(true))
}

/// Runs one round; false when a promise was broken.
async fn one_round(campaign: &Campaign, round: u64, save: Option<&Path>) -> anyhow::Result<bool> {
    let started = Instant::now();
    let mut told = 0;
    let mut finished = campaign
        .run(|death| {
            if death >= told + 10 {
                told = death;
                let seconds = started.elapsed().as_secs();
                say(&format!("round {round}: {death} kills after {seconds} s"));
            }
        })
        .await
        .with_context(|| format!("round {round} with seed {}", campaign.seed))?;
    if let Some(path) = save {
        finished.history.write(path)?;
    }
    if finished.report.is_clean() {
        say(&format!(
            "round {round}: {}; {} crashes were ordered",
            finished.report.tally, finished.ordered_crashes
        ));
        return Ok(true);
    }
    let path = std::env::temp_dir().join(format!("hive-history-{}.jsonl", campaign.seed));
    finished.history.write(&path)?;
    let root = finished.hive.keep().await?;
    say(&finished.report.to_string());
    say(&format!(
        "round {round} with seed {} broke promises.\nhistory: {}\nhive: {}\nagain: soak --check {}",
        campaign.seed,
        path.display(),
        root.display(),
        path.display()
    ));
    Ok(false)
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
