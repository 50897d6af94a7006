//! Logging in from afar (T9): runs the engine's login over pipes, shows what it says as `login`
//! events, and passes on what the operator types.
//!
//! `claude auth login` prints a link and a prompt without a newline, and reads a code; so output is
//! shown as it comes, not line by line. One login at a time, within bounds of time and output.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{bus::Bus, control::orders::Orders, engine::guard};

/// How long a login may take.
const LOGIN_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The most bytes of output of one login that are shown.
const MAX_OUTPUT: usize = 64 * 1024;
/// The longest line that is passed on.
const MAX_INPUT: usize = 4096;
/// How long a login has to end after SIGTERM.
const GUARD_GRACE_MS: &str = "1000";
/// How much output is read at once.
const CHUNK: usize = 4096;
/// How many orders may wait for the login's task.
const QUEUE: usize = 8;

type Answer = Result<String, String>;

/// What the operator wants of a login.
#[derive(Debug)]
enum Order {
    Start(oneshot::Sender<Answer>),
    Input(String, oneshot::Sender<Answer>),
    Cancel(oneshot::Sender<Answer>),
}

/// A cheap handle on the logins of a harness.
#[derive(Debug)]
pub struct LoginDesk {
    orders: mpsc::Sender<Order>,
}

/// Runs logins.
#[derive(Debug)]
pub struct LoginService {
    orders: mpsc::Receiver<Order>,
    command: Vec<String>,
    hive: PathBuf,
    cwd: PathBuf,
    /// What leads it to the world.
    variables: Vec<(String, String)>,
}

/// The two ends: one for the control channel, one to be run. `hive` is this binary: a login runs
/// under the same guard as an engine, so that it ends with the harness. `variables` lead it to the
/// world.
pub fn login(
    command: Vec<String>,
    hive: &Path,
    cwd: &Path,
    variables: Vec<(String, String)>,
) -> (LoginDesk, LoginService) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let service = LoginService {
        orders: receiver,
        command,
        hive: hive.to_path_buf(),
        cwd: cwd.to_path_buf(),
        variables,
    };
    (LoginDesk { orders: sender }, service)
}

impl LoginDesk {
    /// Begins a login.
    ///
    /// # Errors
    /// When one runs already, or it cannot be started.
    pub async fn start(&self) -> Answer {
        self.ask(Order::Start).await
    }

    /// Passes a line on to the login that runs.
    ///
    /// # Errors
    /// When none runs, or the text is no line.
    pub async fn input(&self, text: String) -> Answer {
        self.ask(|answer| Order::Input(text, answer)).await
    }

    /// Gives up the login that runs.
    ///
    /// # Errors
    /// When none runs.
    pub async fn cancel(&self) -> Answer {
        self.ask(Order::Cancel).await
    }

    async fn ask(&self, order: impl FnOnce(oneshot::Sender<Answer>) -> Order) -> Answer {
        let gone = || "the harness is stopping".to_owned();
        let (answer, answered) = oneshot::channel();
        self.orders.send(order(answer)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl LoginService {
    /// Runs logins until `done`.
    pub async fn run(mut self, bus: &Bus, orders: &Orders, done: &CancellationToken) {
        loop {
            // Dropping either arm loses nothing: an order that was received is acted on below.
            let order = tokio::select! {
                order = self.orders.recv() => order,
                () = done.cancelled() => return,
            };
            match order {
                None => return,
                Some(Order::Start(answer)) => match self.spawn() {
                    Err(why) => reply(answer, Err(why)),
                    Ok(child) => {
                        reply(answer, Ok("the login has begun".to_owned()));
                        self.attend(child, bus, orders, done).await;
                    }
                },
                Some(Order::Input(_, answer) | Order::Cancel(answer)) => {
                    reply(answer, Err("no login is running".to_owned()));
                }
            }
        }
    }

    fn spawn(&self) -> Result<Child, String> {
        Command::new(&self.hive)
            .arg(guard::SUBCOMMAND)
            .arg(GUARD_GRACE_MS)
            .args(&self.command)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.hive.display()))
    }

    /// Sees one login through.
    async fn attend(
        &mut self,
        mut child: Child,
        bus: &Bus,
        orders: &Orders,
        done: &CancellationToken,
    ) {
        let mut stdin = child.stdin.take();
        let shown = show(child.stdout.take(), child.stderr.take(), bus);
        tokio::pin!(shown);
        let limit = tokio::time::sleep(LOGIN_LIMIT);
        tokio::pin!(limit);
        let mut is_shown = false;
        // `shown`, `limit` and the child's end are kept over the rounds; an order that was received
        // is acted on in its arm.
        let ended = loop {
            tokio::select! {
                () = &mut shown, if !is_shown => is_shown = true,
                status = child.wait(), if is_shown => break Some(status),
                order = self.orders.recv() => match order {
                    None => break None,
                    Some(Order::Start(answer)) => {
                        reply(answer, Err("a login is running already".to_owned()));
                    }
                    Some(Order::Input(text, answer)) => {
                        reply(answer, pass_on(&mut stdin, &text).await);
                    }
                    Some(Order::Cancel(answer)) => {
                        reply(answer, Ok("the login is given up".to_owned()));
                        break None;
                    }
                },
                () = &mut limit => break None,
                () = done.cancelled() => break None,
            }
        };
        match ended {
            Some(Ok(status)) if status.success() => {
                bus.login("[logged in]");
                orders.logged_in();
            }
            Some(Ok(status)) => bus.login(&format!("[the login failed: {status}]")),
            Some(Err(error)) => bus.login(&format!("[the login was lost: {error}]")),
            None => {
                drop(stdin.take());
                end(&mut child).await;
                bus.login("[the login was given up]");
            }
        }
    }
}

/// Ends the login with everything it started: the guard sees to that.
async fn end(child: &mut Child) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(guard) = pid.and_then(Pid::from_raw)
        && let Err(error) = kill_process(guard, Signal::TERM)
    {
        tracing::warn!(%error, "cannot end the login");
    }
    if let Err(error) = child.wait().await {
        tracing::warn!(%error, "the login was lost");
    }
}

fn reply(to: oneshot::Sender<Answer>, answer: Answer) {
    if to.send(answer).is_err() {
        tracing::debug!("nobody waits for the answer any more");
    }
}

/// Writes one line to the login.
async fn pass_on(stdin: &mut Option<ChildStdin>, text: &str) -> Answer {
    if text.len() > MAX_INPUT || text.chars().any(char::is_control) {
        return Err(format!("it is no line of at most {MAX_INPUT} bytes"));
    }
    let pipe = stdin.as_mut().ok_or("the login takes no more input")?;
    let line = format!("{text}\n");
    let written = async {
        pipe.write_all(line.as_bytes()).await?;
        pipe.flush().await
    };
    // A pipe holds more than a line: one that is full belongs to a login that does not read.
    match tokio::time::timeout(Duration::from_secs(5), written).await {
        Ok(Ok(())) => Ok("passed on".to_owned()),
        Ok(Err(error)) => Err(format!("the login does not take it: {error}")),
        Err(_) => Err("the login does not read".to_owned()),
    }
}

/// Shows what the login says until both its streams end.
async fn show(
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
    bus: &Bus,
) {
    tokio::join!(show_stream(stdout, bus), show_stream(stderr, bus));
}

async fn show_stream(stream: Option<impl AsyncRead + Unpin>, bus: &Bus) {
    let Some(mut stream) = stream else {
        return;
    };
    let mut left = MAX_OUTPUT;
    let mut chunk = [0; CHUNK];
    let mut half = Vec::new();
    loop {
        let read = match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        if left == 0 {
            // Read on, so that a login that talks much does not hang on a full pipe.
            continue;
        }
        half.extend_from_slice(&chunk[..read.min(left)]);
        left -= read.min(left);
        let whole = whole_characters(&half);
        let words = String::from_utf8_lossy(&half[..whole]).into_owned();
        half.drain(..whole);
        if !words.is_empty() {
            bus.login(&words);
        }
        if left == 0 {
            bus.login("[the rest is not shown]");
        }
    }
}

/// How many of the bytes form whole characters; a character that is cut off waits for its rest.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => bytes.len(),
    }
}
