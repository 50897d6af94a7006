//! `hive-rehearsal CMD`: one file per command. Data goes to stdout, all else to stderr.

mod check;
mod print;
mod record;
mod replay_scenario;
mod scenarios;
mod serve;
mod signal;

use std::io::Write;

use clap::{Parser, Subcommand};

/// Serves a scripted model behind the real API shapes, on loopback.
#[derive(Debug, Parser)]
#[command(name = "hive-rehearsal", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a scenario until interrupted.
    Serve(serve::ServeArgs),
    /// Check a scenario file.
    Check(check::CheckArgs),
    /// Pass requests on to a real model and record what it answers.
    Record(record::RecordArgs),
    /// Turn a recording into a scenario, on stdout.
    ReplayScenario(replay_scenario::ReplayScenarioArgs),
    /// List the built-in scenarios.
    Scenarios(scenarios::ScenariosArgs),
    /// Print a built-in scenario, to start your own from.
    Print(print::PrintArgs),
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// What happened, why, and what to do.
    pub async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(args) => args.run().await,
            Command::Check(args) => args.run(),
            Command::Record(args) => args.run().await,
            Command::ReplayScenario(args) => args.run(),
            Command::Scenarios(args) => args.run(),
            Command::Print(args) => args.run(),
        }
    }
}

/// Writes to stdout. A reader that has gone has what it wanted.
fn say(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
