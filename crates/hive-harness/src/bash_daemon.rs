//! The daemon of the background shell (B5): started with the harness, again when it ends, and ended
//! with it.
//!
//! It runs under the same guard as an engine, so that it is gone with a harness that is killed; its
//! tasks are, too. What they were is on disk: the next daemon finds them, marks them interrupted and
//! wakes the agent.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use hive_wire::socket::{self, MAX_SOCKET_PATH};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, Command},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    bus::Bus,
    engine::{self, guard},
    environment::Environment,
    program,
};

/// How long the daemon has to end its tasks after SIGTERM: they have five seconds of it.
const GUARD_GRACE_MS: &str = "7000";
/// The pause before it is started again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A daemon that ran for so long had started well.
const STEADY: Duration = Duration::from_secs(60);
/// How much of its log is read at once.
const CHUNK: usize = 4096;
/// The environment variable by which its processes are found when their guard was killed.
const MARK: &str = "HIVE_BASH_TREE";
/// Beginning of the names of variables that are for the engine alone.
const ENGINE_ONLY: &str = "HIVE_ENGINE_ENV_";

/// Runs the daemon until `done`, or says why there is none. Turns run in `cwd`, and so do commands.
pub(crate) async fn run(
    environment: &Environment,
    hive: &Path,
    cwd: &Path,
    variables: &[(String, String)],
    bus: &Bus,
    done: &CancellationToken,
) {
    match BashDaemon::find(environment, hive, cwd, variables) {
        Ok(daemon) => daemon.keep_running(bus, done).await,
        Err(why) => bus.note(&format!("no background shell: {why}")),
    }
}

/// How to start the daemon.
struct BashDaemon {
    program: PathBuf,
    hive: PathBuf,
    harness: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl BashDaemon {
    fn find(
        environment: &Environment,
        hive: &Path,
        cwd: &Path,
        variables: &[(String, String)],
    ) -> Result<Self, String> {
        let places = &environment.places;
        let program = program::find(&places.bash_daemon).ok_or_else(|| {
            let name = places.bash_daemon.display();
            format!("there is no {name}; install it beside `hive`, or set HIVE_BASH_DAEMON")
        })?;
        let listens = &places.bash_socket;
        if !socket::fits(listens) {
            return Err(format!(
                "the socket path {} has more than {MAX_SOCKET_PATH} bytes; set HIVE_BASH_SOCKET \
                 to a shorter one",
                listens.display()
            ));
        }
        let harness = places.harness.clone();
        let mut env: Vec<_> = std::env::vars_os()
            .filter(|(name, _)| !name.as_bytes().starts_with(ENGINE_ONLY.as_bytes()))
            .collect();
        let places = [
            ("HIVE_BASH_SOCKET", listens.as_path()),
            ("HIVE_SOCKET", &environment.socket),
            ("HIVE_STATE_DIR", cwd),
            ("HIVE_HARNESS_DIR", &harness),
            (MARK, &harness),
        ]
        .map(|(name, path)| (name, path.as_os_str()));
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| (name.as_str(), OsStr::new(value)));
        for (name, value) in places.into_iter().chain(variables) {
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value.into()));
        }
        Ok(Self {
            program,
            hive: hive.to_path_buf(),
            harness,
            env,
        })
    }

    async fn keep_running(&self, bus: &Bus, done: &CancellationToken) {
        let mut pause = FIRST_PAUSE;
        while !done.is_cancelled() {
            // One that outlived its guard and its harness still holds the tasks.
            engine::sweep(self.mark()).await;
            let started = Instant::now();
            let why = match self.start() {
                Ok(child) => match attend(child, done).await {
                    Ok(status) => format!("has ended ({status})"),
                    Err(error) => format!("was lost ({error})"),
                },
                Err(error) => format!("cannot be started ({error})"),
            };
            if done.is_cancelled() {
                return;
            }
            if started.elapsed() >= STEADY {
                pause = FIRST_PAUSE;
            }
            bus.note(&format!(
                "the background shell {why}; it is started again in {} s",
                pause.as_secs_f32()
            ));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = done.cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The guard holds the daemon's stderr and watches it: that pipe is the lifeline. To kill the
    /// guard when the child is dropped would only keep it from ending the daemon.
    fn start(&self) -> io::Result<Child> {
        Command::new(&self.hive)
            .arg(guard::SUBCOMMAND)
            .arg(GUARD_GRACE_MS)
            .arg(&self.program)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    }

    fn mark(&self) -> Vec<u8> {
        let mut mark = format!("{MARK}=").into_bytes();
        mark.extend_from_slice(self.harness.as_os_str().as_bytes());
        mark
    }
}

/// Waits until the daemon has ended, by itself or because of `done`; nothing below it is left then.
async fn attend(mut child: Child, done: &CancellationToken) -> io::Result<ExitStatus> {
    let log = pass_on(child.stderr.take());
    tokio::pin!(log);
    let (mut is_logged, mut is_told) = (false, false);
    // `log` is kept over the rounds; the other two lose nothing when they are dropped.
    loop {
        tokio::select! {
            () = &mut log, if !is_logged => is_logged = true,
            ended = child.wait() => return ended,
            () = done.cancelled(), if !is_told => {
                is_told = true;
                tell_to_end(&child);
            }
        }
    }
}

fn tell_to_end(child: &Child) {
    // There is no id once it was waited for, so that the pid is its own here.
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(guard) = pid.and_then(Pid::from_raw)
        && let Err(error) = kill_process(guard, Signal::TERM)
    {
        tracing::warn!(%error, "cannot end the background shell");
    }
}

/// Puts what the daemon logs into our own log, as it is.
async fn pass_on(log: Option<ChildStderr>) {
    let Some(mut log) = log else {
        return;
    };
    let mut chunk = [0; CHUNK];
    while let Ok(read @ 1..) = log.read(&mut chunk).await {
        // A log that nobody takes must not hold the daemon up.
        io::stderr().write_all(&chunk[..read]).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(dir: &Path, pairs: &[(&str, &Path)]) -> Result<BashDaemon, String> {
        let daemon = dir.join("daemon");
        std::fs::write(&daemon, "").unwrap();
        let mut variables = vec![("HIVE_BASH_DAEMON".into(), daemon.into())];
        variables.extend(pairs.iter().map(|(name, path)| (name.into(), path.into())));
        let environment = Environment::read(variables).unwrap();
        let proxy = [("HTTPS_PROXY".to_owned(), "http://127.0.0.1:1".to_owned())];
        BashDaemon::find(
            &environment,
            Path::new("/bin/hive"),
            Path::new("/cwd"),
            &proxy,
        )
    }

    #[test]
    fn b5_it_is_told_where_everything_is() {
        let dir = tempfile::tempdir().unwrap();
        let daemon = find(dir.path(), &[("HIVE_HARNESS_DIR", Path::new("/h"))]).unwrap();
        for (name, wanted) in [
            ("HIVE_BASH_SOCKET", "/h/bash.sock"),
            ("HIVE_SOCKET", "/run/hive/mcp.sock"),
            ("HIVE_STATE_DIR", "/cwd"),
            ("HIVE_HARNESS_DIR", "/h"),
            ("HTTPS_PROXY", "http://127.0.0.1:1"),
        ] {
            let told: Vec<_> = daemon.env.iter().filter(|(n, _)| n == name).collect();
            assert_eq!(told.len(), 1, "{name}");
            assert_eq!(told[0].1, wanted, "{name}");
        }
    }

    #[test]
    fn b5_why_there_is_none_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("absent");
        let deep = PathBuf::from(format!("/{}", "d".repeat(100)));
        for (name, path, wanted) in [
            ("HIVE_BASH_DAEMON", &absent, "HIVE_BASH_DAEMON"),
            ("HIVE_HARNESS_DIR", &deep, "HIVE_BASH_SOCKET"),
        ] {
            let why = find(dir.path(), &[(name, path)]).err().unwrap();
            assert!(why.contains(wanted), "{why}");
        }
    }
}
