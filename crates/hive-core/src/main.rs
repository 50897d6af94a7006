//! `hive-c0re`: the daemon and the operator's command line.

use std::{io::IsTerminal, process::ExitCode};

use hive_core::{
    cli::{self, Cli, Cmd},
    daemon::{Mode, Running, Setup},
    journal::Remembered,
    paths::Paths,
};
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// A message's way through the daemon is a few dozen small allocations: a tenth of its time with the
/// system's allocator, and a third of that with this one (`make bench`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // First of all: a keeper has its process for itself.
    if let Some(code) = hive_core::keeper() {
        return code;
    }
    let cli = match Cli::from_args() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let result = Paths::find(cli.root.as_deref()).and_then(|paths| {
        // One thread for all sockets: a second one would be woken for every request that comes
        // alone, find nothing, and delay the answer. What takes time has threads of its own.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        match cli.command {
            Cmd::Client(command) => {
                let places = paths.places();
                Ok(runtime.block_on(cli::run_client_command(command, &places, cli.json)))
            }
            Cmd::Serve(args) => runtime.block_on(serve(
                Setup {
                    paths,
                    port: args.port,
                    mode: Mode::Serve,
                },
                |_| Ok(()),
            )),
            Cmd::Up(args) => {
                let setup = Setup {
                    paths,
                    port: args.port,
                    mode: Mode::Up,
                };
                let root = cli.root.clone();
                runtime.block_on(serve(setup, |running| {
                    cli::welcome(running, root.as_deref())
                }))
            }
        }
    });
    result.unwrap_or_else(|error| {
        cli::report_fatal(&error);
        ExitCode::FAILURE
    })
}

async fn serve(
    setup: Setup,
    when_up: impl FnOnce(&Running) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    log_to_stderr();
    let running = Running::start(setup).await?;
    when_up(&running)?;
    running.run().await?;
    Ok(ExitCode::SUCCESS)
}

/// Logs go to stderr, and are remembered for those who may read them: with a date for a terminal or a file, without one for the journal, which adds
/// its own.
fn log_to_stderr() {
    // The MCP library has a word for every request; what we have to say of it is in our own log.
    let quiet = || EnvFilter::new("info,rmcp=error");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| quiet());
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let shown = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    let shown = if is_journal {
        shown.without_time().boxed()
    } else {
        shown.boxed()
    };
    let remembered = fmt::layer().with_ansi(false).with_writer(|| Remembered);
    tracing_subscriber::registry()
        .with(filter)
        .with(shown)
        .with(remembered)
        .init();
}
