//! Side-by-side benchmarks of the hive's message queue against what people use instead.
//!
//! `cargo run --release -p bench -- [queue] [--quick]` starts every peer itself on one disk with
//! durability on, runs them in turns, prints a table and writes `bench/results/queue.json`. See
//! `docs/benchmarks.md`.

mod conn;
mod host;
mod options;
mod peer;
mod pin;
mod process;
mod report;
mod results;
mod site;
mod stats;
mod suite;
mod targets;
mod workload;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

use options::{Options, Suite};

fn main() -> Result<()> {
    let options = Options::parse();
    // One thread for all clients of every peer, as the peers' own benchmarks do.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match options.suite {
            Suite::Echo => {
                let socket = options.socket.as_deref().context("echo needs --socket")?;
                peer::pingpong::serve(socket).await
            }
            Suite::Queue => queue(&options).await,
        }
    })
}

/// Runs the queue suite until it ends or is interrupted; either way every server is stopped.
async fn queue(options: &Options) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    host::raise_file_limit()?;
    // Dropping the suite's future stops its servers and removes its files.
    let results = tokio::select! {
        results = suite::run(options) => results?,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    };
    report::print(&results);
    report::save(&results, &options.results()?)
}
