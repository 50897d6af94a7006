//! The long conversation: up to fifty agents, thousands of messages, many kills.

use std::{process::ExitCode, time::Instant};

use anyhow::Context;
use clap::Parser;
use hive_testkit::conversation::Conversation;

/// Lets agents talk while they and the daemon are killed, and proves that nobody waits for anything
/// in the end.
#[derive(Parser)]
struct Args {
    /// How many agents talk.
    #[arg(long, default_value_t = 50)]
    agents: u32,
    /// How much each of them begins.
    #[arg(long, default_value_t = 200)]
    topics: u32,
    /// How often the daemon is killed.
    #[arg(long, default_value_t = 40)]
    kills: u32,
    /// What all decisions follow from; the time of day unless given.
    #[arg(long)]
    seed: Option<u64>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(1, |since| since.as_secs())
    });
    let conversation = Conversation {
        seed,
        agents: args.agents,
        topics: args.topics,
        kills: args.kills,
    };
    say(&format!("seed {seed}: {conversation:?}"));
    let started = Instant::now();
    let run = conversation.run(|death| {
        if death % 10 == 0 {
            let seconds = started.elapsed().as_secs();
            say(&format!("{death} kills after {seconds} s"));
        }
    });
    let mut finished = run.await.with_context(|| format!("seed {seed}"))?;
    say(&finished.tally.to_string());
    if finished.violations.is_empty() {
        say("no violation");
        return Ok(ExitCode::SUCCESS);
    }
    let root = finished.hive.keep().await?;
    for violation in &finished.violations {
        say(violation);
    }
    say(&format!(
        "seed {seed} broke promises; hive: {}",
        root.display()
    ));
    Ok(ExitCode::FAILURE)
}

#[expect(
    clippy::print_stdout,
    reason = "this is a command with something to say"
)]
fn say(line: &str) {
    println!("{line}");
}
