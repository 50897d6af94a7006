//! The daemon's life: lock, recover, listen, stop.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Context;
use hive_wire::client::{Client, Options as ClientOptions};
use rustix::process::{getpid, set_child_subreaper};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bash_env, environment, options::Options, reporter, server, supervise::Supervisor, table::Table,
};

/// How long stopping may take: the tasks' own ends, and a moment for writing them down.
const STOP_WITHIN: Duration = Duration::from_secs(20);

/// Runs the daemon until SIGTERM or SIGINT; the tasks end with it.
///
/// # Errors
/// When another daemon has these tasks, or a directory or the socket cannot be had.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // What a guard that was killed leaves behind is adopted by the daemon, and found there.
    set_child_subreaper(Some(getpid())).context("cannot adopt orphans")?;

    let tasks_dir = options.tasks_dir();
    fs::create_dir_all(&tasks_dir)
        .with_context(|| format!("cannot make the directory {}", tasks_dir.display()))?;
    let _lock = lock(&options)?;
    let table = Table::open(&options.harness_dir, &tasks_dir, options.max_running)
        .with_context(|| format!("cannot read the tasks in {}", tasks_dir.display()))?;
    let env_file = bash_env::install(&options.harness_dir, options.short_cargo_messages)
        .with_context(|| format!("cannot write to {}", options.harness_dir.display()))?;
    let listener = server::bind(&options.socket)
        .with_context(|| format!("cannot listen on {}", options.socket.display()))?;

    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let supervisor = Arc::new(Supervisor {
        table: Arc::new(table),
        dir: options.state_dir.clone(),
        env: environment::clean(std::env::vars_os(), &options.keep_env),
        env_file,
        max_output: options.max_output,
        stop: stop.clone(),
        guards: Mutex::new(BTreeSet::new()),
    });
    let hive = Client::new(&options.hive_socket, ClientOptions::default());
    tasks.spawn(reporter::run(
        Arc::clone(&supervisor.table),
        hive,
        reporter::Pauses::default(),
        stop.clone(),
    ));
    tasks.spawn(server::serve(
        listener,
        Arc::clone(&supervisor),
        tasks.clone(),
        stop.clone(),
    ));
    tracing::info!(socket = %options.socket.display(), "up");

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.cancel();
    tasks.close();
    if tokio::time::timeout(STOP_WITHIN, tasks.wait())
        .await
        .is_err()
    {
        tracing::error!("some tasks did not end in time");
    }
    fs::remove_file(&options.socket).ok();
    tracing::info!("down");
    Ok(())
}

/// Makes sure that no other daemon writes to the same records.
fn lock(options: &Options) -> anyhow::Result<File> {
    let path = options.tasks_dir().join("daemon.lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => anyhow::bail!(
            "another hive-bash-daemon has {}; stop it first",
            options.tasks_dir().display()
        ),
        Err(fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}
