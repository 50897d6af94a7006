//! One task from its start to its end.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{WaitOptions, getpid, waitpid};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    guard::{Order, Report, SUBCOMMAND},
    output::{CHUNK, Capped},
    table::{Ending, Table},
    task::{Record, State},
    tree,
};

/// How long a guard may take to end what its task left behind; more than it grants itself.
const CLEANUP: Duration = Duration::from_secs(15);

/// What every task is started with.
pub(crate) struct Supervisor {
    pub(crate) table: Arc<Table>,
    pub(crate) dir: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) env_file: PathBuf,
    pub(crate) max_output: u64,
    pub(crate) stop: CancellationToken,
    /// The processes of the guards that live.
    pub(crate) guards: Mutex<BTreeSet<i32>>,
}

impl Supervisor {
    /// Runs a task that is written down, and writes down how it ended.
    pub(crate) async fn run(&self, record: Record) {
        let id = record.id;
        let (state, ending) = match Task::start(self, &record).await {
            Ok(task) => task.finish(self, &record).await,
            Err(error) => {
                let note = format!("it could not be started: {error}");
                tracing::error!(%id, %error, "cannot start a task");
                (
                    State::Done,
                    Ending {
                        note: Some(note),
                        ..Ending::default()
                    },
                )
            }
        };
        self.table.ended(id, state, ending);
    }

    /// Ends what a guard left that was killed itself: the daemon has adopted it.
    async fn end_strangers(&self) {
        for _ in 0..50 {
            let strangers = {
                // No guard is started meanwhile, so whoever is no guard and below none is a stranger.
                let guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
                tree::kill(getpid(), &guards);
                tree::children(getpid(), &guards)
            };
            if strangers.is_empty() {
                return;
            }
            for stranger in strangers {
                // An error says that it is not ours any more, which is what is wanted.
                waitpid(Some(stranger), WaitOptions::NOHANG).ok();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tracing::error!("something that a task started cannot be ended");
    }

    fn forget_guard(&self, pid: Option<i32>) {
        if let Some(pid) = pid {
            let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
            guards.remove(&pid);
        }
    }
}

/// A task whose guard runs.
struct Task {
    guard: Child,
    guard_pid: Option<i32>,
    orders: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    streams: JoinSet<io::Result<()>>,
}

/// How watching over a task ended.
enum Watched {
    Ended(Ending),
    /// The guard was lost before it said how the shell ended.
    Lost,
    /// The daemon is stopping.
    Stopped,
}

impl Task {
    async fn start(supervisor: &Supervisor, record: &Record) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(SUBCOMMAND)
            .env_clear()
            .envs(supervisor.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let out = Capped::create(
            &supervisor.table.output(record.id, "out"),
            supervisor.max_output,
        )?;
        let err = Capped::create(
            &supervisor.table.output(record.id, "err"),
            supervisor.max_output,
        )?;
        let (mut guard, guard_pid) = {
            let guards = supervisor.guards.lock();
            let mut guards = guards.unwrap_or_else(PoisonError::into_inner);
            let guard = command.spawn()?;
            let pid = guard.id().and_then(|pid| i32::try_from(pid).ok());
            guards.extend(pid);
            (guard, pid)
        };
        // The command holds our copy of the guard's end, which has to go for its end to be noticed.
        drop(command);
        let mut streams = JoinSet::new();
        if let (Some(stdout), Some(stderr)) = (guard.stdout.take(), guard.stderr.take()) {
            streams.spawn(pump(stdout, out));
            streams.spawn(pump(stderr, err));
        }
        let (reports, mut orders) = UnixStream::from_std(ours)?.into_split();
        let env_file = &supervisor.env_file;
        let order = Order {
            cmd: record.cmd.clone(),
            dir: supervisor.dir.clone(),
            env_file: env_file.is_file().then(|| env_file.clone()),
        };
        let order = serde_json::to_string(&order)? + "\n";
        orders.write_all(order.as_bytes()).await?;
        Ok(Self {
            guard,
            guard_pid,
            orders,
            reports: BufReader::new(reports).lines(),
            streams,
        })
    }

    /// Watches until the shell has ended and everything it left behind is gone.
    async fn finish(mut self, supervisor: &Supervisor, record: &Record) -> (State, Ending) {
        let started = Instant::now();
        let mut timed_out = false;
        let watched = self.watch(supervisor, record, &mut timed_out).await;
        let orders = Some(self.orders);
        // A guard that hears the end of its orders ends everything at once.
        let _orders = orders.filter(|_| matches!(watched, Watched::Ended(_)));
        let mut incomplete = None;
        let cleaned = tokio::time::timeout(CLEANUP, async {
            let ended = self.guard.wait().await;
            supervisor.forget_guard(self.guard_pid);
            if matches!(watched, Watched::Lost) {
                // They hold the streams, which would not end otherwise.
                supervisor.end_strangers().await;
            }
            while let Some(stream) = self.streams.join_next().await {
                if let Ok(Err(error)) = stream {
                    incomplete = Some(format!("its output is incomplete: {error}"));
                }
            }
            ended
        });
        if cleaned.await.is_err() {
            incomplete = Some("something that it started cannot be ended".to_owned());
            if let Err(error) = self.guard.start_kill() {
                tracing::warn!(%error, "cannot end a guard");
            }
        }
        supervisor.forget_guard(self.guard_pid);
        let (state, mut ending) = match watched {
            Watched::Ended(ending) if timed_out => (State::TimedOut, ending),
            Watched::Ended(ending) => (State::Done, ending),
            Watched::Stopped => (
                State::Interrupted,
                Ending {
                    took: started.elapsed(),
                    note: Some("the daemon was stopped".to_owned()),
                    ..Ending::default()
                },
            ),
            Watched::Lost => (
                State::Interrupted,
                Ending {
                    took: started.elapsed(),
                    note: Some("the process that stood over it was killed".to_owned()),
                    ..Ending::default()
                },
            ),
        };
        if timed_out && let Some(seconds) = record.timeout_secs {
            ending.note = Some(format!("after {seconds} s"));
        }
        ending.note = incomplete.or(ending.note);
        (state, ending)
    }

    async fn watch(
        &mut self,
        supervisor: &Supervisor,
        record: &Record,
        timed_out: &mut bool,
    ) -> Watched {
        let mut started = Instant::now();
        let mut limit = record.timeout_secs.map(Duration::from_secs);
        loop {
            let time_is_up = async {
                match limit {
                    Some(limit) => {
                        tokio::time::sleep(limit.saturating_sub(started.elapsed())).await
                    }
                    None => std::future::pending().await,
                }
            };
            // Reading a line keeps what it has over a drop; the others hold nothing.
            tokio::select! {
                () = supervisor.stop.cancelled() => return Watched::Stopped,
                () = time_is_up => {
                    (*timed_out, limit) = (true, None);
                    if self.orders.write_all(b"stop\n").await.is_err() {
                        return Watched::Lost;
                    }
                }
                line = self.reports.next_line() => {
                    let report = line.ok().flatten();
                    match report.and_then(|line| serde_json::from_str(&line).ok()) {
                        Some(Report::Started { pid }) => {
                            started = Instant::now();
                            supervisor.table.started(record.id, pid);
                        }
                        Some(Report::Failed { why }) => {
                            return Watched::Ended(Ending { note: Some(why), ..Ending::default() });
                        }
                        Some(Report::Ended { exit_code, signal }) => {
                            let took = started.elapsed();
                            return Watched::Ended(Ending { exit_code, signal, took, note: None });
                        }
                        None => return Watched::Lost,
                    }
                }
            }
        }
    }
}

/// Copies a stream into its file until it ends. When the file cannot be written any more, the rest
/// is read and dropped, so that the command is not held up.
async fn pump(mut stream: impl AsyncRead + Unpin, mut file: Capped) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut outcome = Ok(());
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return outcome;
        }
        if outcome.is_ok() {
            outcome = tokio::task::block_in_place(|| file.append(&buffer[..read]));
        }
    }
}
