//! Side-by-side benchmarks: the hive's message queue against what people use instead, turns of the
//! loop against the bare engine, the native engine against others, containers of agents against the
//! bare tools, and calls of tools against a bare MCP server.
//!
//! `cargo run --release -p bench -- [queue|loop|engine|runtimes|tools] [--quick]` starts everything it
//! needs, prints a table and writes a file per suite below `bench/results`. See `docs/benchmarks.md`.

mod conn;
mod engines;
mod host;
mod options;
mod peer;
mod pin;
mod process;
mod report;
mod results;
mod runtimes;
mod site;
mod stats;
mod suite;
mod targets;
mod tools;
mod turn_loop;
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
            Suite::Queue => interruptible(queue(&options)).await,
            Suite::Loop => interruptible(turn_loop::run(&options)).await,
            Suite::Engine => interruptible(engines::run(&options)).await,
            Suite::Runtimes => interruptible(runtimes::run(&options)).await,
            Suite::Tools => interruptible(tools::run(&options)).await,
            Suite::McpEcho => tools::echo::serve().await,
            Suite::Attack => {
                let socket = options.socket.as_deref().context("attack needs --socket")?;
                tools::attack(socket)
            }
            Suite::All => {
                interruptible(queue(&options)).await?;
                interruptible(turn_loop::run(&options)).await?;
                interruptible(engines::run(&options)).await?;
                interruptible(runtimes::run(&options)).await?;
                interruptible(tools::run(&options)).await
            }
        }
    })
}

/// Runs a suite until it ends or is interrupted; either way every server is stopped, because
/// dropping the suite's future does that and removes its files.
async fn interruptible(suite: impl Future<Output = Result<()>>) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = suite => done,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn queue(options: &Options) -> Result<()> {
    host::raise_file_limit()?;
    let results = suite::run(options).await?;
    report::print(&results);
    report::save(&results, &options.results("queue")?)
}
