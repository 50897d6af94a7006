//! `hive-bash-daemon`: runs an agent's background commands. One per agent.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use hive_bash::{daemon, guard, options::Options};
use tracing_subscriber::EnvFilter;

/// Runs an agent's background commands; set up by its environment (docs/bash.md).
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Stands over one command; the daemon starts this itself.
    #[command(name = guard::SUBCOMMAND, hide = true)]
    Guard,
}

#[expect(clippy::print_stderr, reason = "the log may not be there yet")]
fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Some(Command::Guard) => guard::run(),
        None => serve(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hive-bash-daemon: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("HIVE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(daemon::run(Options::from_env()?))
}
