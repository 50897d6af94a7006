//! The client of both sockets: typed calls over one connection, many at a time.
//!
//! A [`Client`] connects at its first call and again at the first call after a loss. Calls are
//! pipelined: each carries its own id, and replies are matched by it in whatever order they come.
//! A call may be dropped at any moment; its id is forgotten, its line is still written whole, and
//! its late reply is ignored. The client repeats nothing on its own unless it knows that not one
//! byte was sent; [`Client::call_idempotent`] is for commands that bear repetition.

mod link;
mod pending;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use thiserror::Error;
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{
    ErrorCode, WireError,
    command::{Command, RequestId, encode_request},
    line::MAX_LINE,
    vigil::Vigil,
};
use link::Connection;
use pending::{Loss, Reply};

/// The pause before the first repetition of an idempotent call; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two repetitions.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How patient a client is and how much it has under way.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long [`Client::call`] waits for its reply, connecting included.
    pub call_timeout: Duration,
    /// How many calls may be under way at once; further ones wait for their turn.
    pub max_in_flight: usize,
    /// How long to stay awake for a reply, where they come that fast: for one whose caller waits for
    /// each. None unless told.
    pub stay_awake: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            max_in_flight: 64,
            stay_awake: Duration::ZERO,
        }
    }
}

/// Why a call brought no reply: one variant per different reaction of the caller.
#[derive(Debug, Error)]
pub enum ClientError {
    /// There is no connection to be had; nothing was sent.
    #[error("cannot reach the daemon at {}; is it running?", path.display())]
    Unreachable {
        /// The socket as the caller knows it.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The connection went away before the reply.
    #[error(
        "the connection was lost before the reply: \
         the command may or may not have been carried out"
    )]
    Lost,
    /// The reply did not come in time.
    #[error("no reply within {after:?}: the command may or may not have been carried out")]
    TimedOut {
        /// How long the call waited.
        after: Duration,
    },
    /// The command was not carried out, and the daemon says why.
    #[error(transparent)]
    Refused(#[from] WireError),
    /// The peer does not speak this protocol, or not this version of it. What became of the
    /// command is not known.
    #[error("the daemon's answer makes no sense: {0}")]
    Protocol(String),
}

impl ClientError {
    /// Whether a new connection may do better.
    fn is_worth_repeating(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost => true,
            Self::Refused(error) => error.code == ErrorCode::ShuttingDown,
            Self::TimedOut { .. } | Self::Protocol(_) => false,
        }
    }
}

impl From<Loss> for ClientError {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Gone => Self::Lost,
            Loss::TurnedAway(error) => Self::Refused(error),
            Loss::Protocol(what) => Self::Protocol(what),
        }
    }
}

/// A handle on one socket; clones share its connection. When the last one goes, the connection
/// and its task go too.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    options: Options,
    next_id: AtomicI64,
    slots: Semaphore,
    vigil: Vigil,
    /// Held while connecting, so that many waiting calls make one connection.
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Client {
    /// A client that connects when it is first called.
    pub fn new(path: impl Into<PathBuf>, options: Options) -> Self {
        let slots = options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            shared: Arc::new(Shared {
                path: path.into(),
                vigil: Vigil::of(options.stay_awake),
                options,
                next_id: AtomicI64::new(1),
                slots: Semaphore::new(slots),
                connection: Mutex::new(None),
            }),
        }
    }

    /// A client with default options that is connected already.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub async fn connect(path: &Path) -> Result<Self, ClientError> {
        let client = Self::new(path, Options::default());
        client.shared.connection().await?;
        Ok(client)
    }

    /// Carries out one command, waiting for at most [`Options::call_timeout`]. For a command that
    /// parks, such as `recv` with `wait_seconds`, take [`Self::call_within`].
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn call<C: Command>(&self, command: &C) -> Result<C::Reply, ClientError> {
        self.call_within(command, self.shared.options.call_timeout)
            .await
    }

    /// Carries out one command, waiting for at most `timeout`, connecting included.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn call_within<C: Command>(
        &self,
        command: &C,
        timeout: Duration,
    ) -> Result<C::Reply, ClientError> {
        let number = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let line = encode::<C>(command, number)?;
        match self.shared.exchange(number, &line, timeout).await? {
            Some(reply) => decode::<C>(reply),
            None => Err(ClientError::TimedOut { after: timeout }),
        }
    }

    /// Carries out one command and repeats it on a new connection when the daemon cannot be
    /// reached, goes away or says that it is stopping, until `deadline` has passed.
    ///
    /// Only for commands that do the same when they are done twice: `recv` with `req`, `confirm`,
    /// `ack_turn`, `requeue_inflight`, `send` with `key`, and those that only read. A `send`
    /// without `key` would be two messages, a `recv` without `req` would lose a batch.
    ///
    /// # Errors
    /// The last error once the deadline is near, or at once one that repeating cannot mend.
    pub async fn call_idempotent<C: Command>(
        &self,
        command: &C,
        deadline: Duration,
    ) -> Result<C::Reply, ClientError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let left = deadline.saturating_sub(started.elapsed());
            let error = match self.call_within(command, left).await {
                Err(error) if error.is_worth_repeating() => error,
                Err(ClientError::TimedOut { .. }) => {
                    return Err(ClientError::TimedOut { after: deadline });
                }
                outcome => return outcome,
            };
            if started.elapsed() + pause >= deadline {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Ends the connection and waits until its task is gone. Calls that are under way end with
    /// [`ClientError::Lost`]; a later call on another clone connects anew.
    pub async fn close(self) {
        let connection = self.shared.connection.lock().await.take();
        if let Some(connection) = connection {
            connection.end().await;
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Sends one line and waits for the reply with its number; none when it does not come in time.
    async fn exchange(
        &self,
        number: i64,
        line: &[u8],
        timeout: Duration,
    ) -> Result<Option<Reply>, ClientError> {
        let deadline = deadline(timeout);
        // These are ready at once nearly always, and then no timer is set.
        let Ok(slot) = timeout_at(deadline, self.slots.acquire()).await else {
            return Ok(None);
        };
        let _slot = slot.expect("nobody closes this semaphore");
        loop {
            let Ok(found) = timeout_at(deadline, self.connection()).await else {
                return Ok(None);
            };
            let (connection, reused) = found?;
            let waiting = match connection.register(number) {
                Ok(waiting) => waiting,
                // The connection ended between two lines of this loop; nothing was sent.
                Err(_) if reused => continue,
                Err(loss) => return Err(loss.into()),
            };
            let Ok(written) = timeout_at(deadline, connection.write(line)).await else {
                return Ok(None);
            };
            // An idle connection whose peer has gone is found out by writing to it. Not one byte
            // was taken, so even a command that bears no repetition may go out on a new one.
            if written.is_err() && reused {
                continue;
            }
            // After a failed write to a new connection the reader knows best what happened: it may
            // have been turned away with a reason.
            let sent_at = Instant::now().into_std();
            self.vigil.keep(sent_at, || waiting.is_answered()).await;
            let reply = connection.reply(waiting, deadline).await;
            self.vigil.ended(sent_at);
            return Ok(reply.transpose()?);
        }
    }

    /// The connection, and whether it was there before.
    async fn connection(&self) -> Result<(Arc<Connection>, bool), ClientError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| connection.is_usable()) {
            return Ok((Arc::clone(connection), true));
        }
        let stream = link::open(&self.path, self.options.connect_timeout)
            .await
            .map_err(|source| ClientError::Unreachable {
                path: self.path.clone(),
                source,
            })?;
        let connection = Arc::new(Connection::new(stream));
        *slot = Some(Arc::clone(&connection));
        Ok((connection, false))
    }
}

/// When a call's time is up; a time that the clock does not reach is as good as a century.
fn deadline(timeout: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + CENTURY)
}

/// The request line, refused here when the daemon would refuse it and close the connection.
fn encode<C: Command>(command: &C, number: i64) -> Result<Vec<u8>, ClientError> {
    let line = encode_request(command, Some(&RequestId::Number(number))).map_err(|error| {
        WireError::new(
            ErrorCode::BadRequest,
            format!("cannot encode `{}`: {error}", C::NAME),
        )
    })?;
    if line.len() - 1 > MAX_LINE {
        let what = format!(
            "the request `{}` has {} bytes, and a line has at most {MAX_LINE}",
            C::NAME,
            line.len() - 1
        );
        return Err(WireError::new(ErrorCode::LineTooLong, what)
            .hint("send less at once")
            .into());
    }
    Ok(line)
}

fn decode<C: Command>(reply: Reply) -> Result<C::Reply, ClientError> {
    if let Some(error) = reply.head.error.filter(|_| !reply.head.ok) {
        return Err(ClientError::Refused(error));
    }
    if !reply.head.ok {
        let what = format!("`{}` failed without saying why", C::NAME);
        return Err(ClientError::Protocol(what));
    }
    serde_json::from_slice(&reply.line)
        .map_err(|error| ClientError::Protocol(format!("the reply to `{}`: {error}", C::NAME)))
}
