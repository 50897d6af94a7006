//! `hive-bash-mcp`: the MCP server `bash` on standard input and output, one per engine process.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use hive_bash::{mcp, options::Options};
use tracing_subscriber::EnvFilter;

/// Serves an agent's background shell as MCP tools; set up by its environment (docs/bash.md).
#[derive(Parser)]
#[command(version)]
struct Cli {}

#[expect(clippy::print_stderr, reason = "the log may not be there yet")]
fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hive-bash-mcp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("HIVE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,hive_mcp=info,hive_bash=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let options = Options::from_env()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let server = mcp::server(&options.socket, &options.harness_dir);
    let served = runtime.block_on(hive_mcp::stdio::serve_stdio(server));
    // A read of standard input may still be parked on a thread of its own.
    runtime.shutdown_background();
    Ok(served?)
}
