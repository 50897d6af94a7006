//! `hive`: the harness of one agent (`serve`), its MCP server (`mcp`), and a nudge (`wake`).

use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::{Parser, Subcommand};
use hive_harness::{
    engine::guard,
    environment::Environment,
    serve,
    surface::{Surface, socket::SocketSurface},
};
use hive_wire::agent::MAX_BODY;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// The harness of one hyperhive agent.
#[derive(Debug, Parser)]
#[command(name = "hive", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Cmd,
}

#[derive(Debug, Subcommand)]
enum Cmd {
    /// Take the agent's mail and run its turns, until told to stop.
    ///
    /// Everything is set by the environment: see docs/environment.md.
    Serve,
    /// Serve the hive's tools over standard input and output, for an engine.
    Mcp,
    /// Put a message into the agent's own inbox, so that its next turn begins with it.
    Wake {
        /// A label that says where it comes from, such as `matrix`; nobody's name.
        #[arg(long)]
        from: String,
        /// What to say; `-` reads it from standard input.
        #[arg(long)]
        body: String,
    },
}

fn main() -> ExitCode {
    // The guard is started once per engine process: it goes before everything else, so that it
    // costs nothing of what the harness needs.
    if let Some(code) = guard::main_if_called() {
        return code;
    }
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("hive: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Cmd) -> anyhow::Result<()> {
    log_to_stderr()?;
    // One thread: a harness waits nearly all of its life, and there may be hundreds of them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    match command {
        Cmd::Serve => {
            let environment = Environment::from_process()?;
            let hive = own_binary()?;
            runtime.block_on(serve::serve(&environment, &hive))
        }
        Cmd::Mcp => {
            let served = runtime.block_on(hive_mcp::stdio::run(hive_mcp::Options::from_env()));
            // A read of standard input may still be parked on a thread of its own.
            runtime.shutdown_background();
            Ok(served?)
        }
        Cmd::Wake { from, body } => {
            let surface = SocketSurface::new(&Environment::socket_from_process()?);
            let body = if body == "-" { read_stdin()? } else { body };
            runtime.block_on(surface.wake_external(&from, &body))?;
            Ok(())
        }
    }
}

/// Where this binary is, so that it can be started again as guard and as MCP server.
fn own_binary() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find out where this binary is")
}

fn read_stdin() -> anyhow::Result<String> {
    let mut body = String::new();
    let limit = MAX_BODY as u64 + 1;
    std::io::stdin()
        .take(limit)
        .read_to_string(&mut body)
        .context("cannot read the body from standard input")?;
    anyhow::ensure!(
        body.len() <= MAX_BODY,
        "the body on standard input is longer than {} KiB",
        MAX_BODY / 1024
    );
    Ok(body)
}

/// Logs go to stderr: with a date for a terminal or a file, without one for the journal, which adds
/// its own.
fn log_to_stderr() -> anyhow::Result<()> {
    let level = match std::env::var("HIVE_LOG").as_deref() {
        Err(_) | Ok("") => LevelFilter::INFO,
        Ok(level) => level.parse().map_err(|_| {
            anyhow::anyhow!("HIVE_LOG={level:?}: it is error, warn, info, debug or trace")
        })?,
    };
    // The MCP library opens a span for every request, which costs more than our own log lines.
    let library = if level > LevelFilter::INFO {
        level
    } else {
        LevelFilter::ERROR
    };
    let filter = EnvFilter::new(format!("{level},rmcp={library}"));
    let format = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        format.without_time().init();
    } else {
        format.init();
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the last words of a failed command")]
fn complain(words: &str) {
    eprintln!("{words}");
}
