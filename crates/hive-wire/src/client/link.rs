//! One connection: a stream, the calls that wait on it, and the task that reads it.
//!
//! Callers write their lines themselves, one after the other, so that an uncontended call costs no
//! hop to another task. A caller that goes away in the middle of its line leaves the rest behind in
//! `unsent`; whoever writes next, or the connection's task, finishes it first. So lines are always
//! whole, and at most one of them is held.

use std::{
    convert::Infallible,
    io,
    path::Path,
    sync::{
        Arc, Mutex as StdMutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use rustix::net::Shutdown;
use tokio::{
    sync::{Mutex, Notify},
    task::JoinSet,
    time::Instant,
};

use super::pending::{Loss, Pending, Reply, Waiting};
use crate::{
    ErrorCode,
    alarm::Alarm,
    command::{ReplyHead, RequestId},
    line::{LineBuffer, MAX_LINE},
    socket,
    stream::Stream,
    text,
};

/// How long to wait for the daemon to accept somebody else when its queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// Connects, waiting while the daemon's queue of connections is full.
pub(super) async fn open(path: &Path, timeout: Duration) -> io::Result<Stream> {
    let attempts = async {
        loop {
            match socket::connect(path).await.and_then(Stream::new) {
                // Unix sockets do not queue connections beyond the backlog: the kernel says
                // "again" at once, however alive the daemon is.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(QUEUE_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    };
    match tokio::time::timeout(timeout, attempts).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection within {timeout:?}"),
        )),
    }
}

/// A connection with its reader. Dropped, it closes.
#[derive(Debug)]
pub(super) struct Connection {
    link: Arc<Link>,
    /// Holds the one task, and aborts it when it is dropped.
    task: Mutex<JoinSet<()>>,
    /// Alarms that no call needs just now.
    alarms: StdMutex<Vec<Alarm>>,
}

#[derive(Debug)]
struct Link {
    stream: Stream,
    pending: Pending,
    /// The rest of the line that is being written.
    unsent: Mutex<BytesMut>,
    /// Says that a line is half written and that its writer may go away.
    half_written: Notify,
    /// Set when writing failed: replies may still come, new calls go elsewhere.
    deaf: AtomicBool,
}

/// Not one byte of the line was taken.
#[derive(Debug)]
pub(super) struct Unsent;

impl Connection {
    /// Takes over a stream and starts reading it.
    pub(super) fn new(stream: Stream) -> Self {
        let link = Arc::new(Link {
            stream,
            pending: Pending::new(),
            unsent: Mutex::new(BytesMut::new()),
            half_written: Notify::new(),
            deaf: AtomicBool::new(false),
        });
        let mut task = JoinSet::new();
        task.spawn(run(End(Arc::clone(&link))));
        Self {
            link,
            task: Mutex::new(task),
            alarms: StdMutex::default(),
        }
    }

    /// Whether a new call may use it.
    pub(super) fn is_usable(&self) -> bool {
        self.link.pending.is_open() && !self.link.deaf.load(Ordering::Acquire)
    }

    /// Announces a call before its line is written.
    pub(super) fn register(&self, number: i64) -> Result<Waiting<'_>, Loss> {
        self.link.pending.register(number)
    }

    /// Writes one line, newline included. Once its first bytes are out it is finished even when
    /// the caller goes away, and a failure after that is for the reader to find.
    ///
    /// # Errors
    /// [`Unsent`] when the peer took nothing of it.
    pub(super) async fn write(&self, line: &[u8]) -> Result<(), Unsent> {
        let outcome = self.link.write(line).await;
        if outcome.is_err() {
            self.link.deaf.store(true, Ordering::Release);
        }
        outcome
    }

    /// Waits for the reply; none when `deadline` comes first.
    pub(super) async fn reply(
        &self,
        waiting: Waiting<'_>,
        deadline: Instant,
    ) -> Option<Result<Reply, Loss>> {
        let mut alarm = self.alarms().pop().unwrap_or_default();
        // Both arms are cancel-safe: a call that is given up is forgotten, an alarm stays set.
        let outcome = tokio::select! {
            biased;
            reply = waiting.reply() => Some(reply),
            () = alarm.ring(deadline) => None,
        };
        self.alarms().push(alarm);
        outcome
    }

    fn alarms(&self) -> MutexGuard<'_, Vec<Alarm>> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it and waits until its task is gone.
    pub(super) async fn end(&self) {
        self.task.lock().await.shutdown().await;
    }
}

/// The connection's task. `end` is made before it starts, for it may be aborted before it has run.
async fn run(end: End) {
    let link = &end.0;
    // Only the reader's arm can end, and the connection ends with it: a line that is cut off then
    // would have reached nobody.
    let loss = tokio::select! {
        loss = link.read_replies() => loss,
        never = link.finish_lines() => match never {},
    };
    link.pending.end(loss);
}

impl Link {
    async fn read_replies(&self) -> Loss {
        let mut lines = LineBuffer::new(MAX_LINE);
        let mut first = true;
        loop {
            match lines.next_line() {
                Ok(Some(line)) => {
                    if let Err(loss) = self.settle(line, first) {
                        return loss;
                    }
                    first = false;
                }
                Ok(None) => match self.stream.read(&mut lines).await {
                    Ok(0) | Err(_) => return Loss::Gone,
                    Ok(_) => {}
                },
                Err(error) => return Loss::Protocol(error.to_string()),
            }
        }
    }

    fn settle(&self, line: Bytes, first: bool) -> Result<(), Loss> {
        let head: ReplyHead = serde_json::from_slice(&line)
            .map_err(|error| Loss::Protocol(format!("a line that is no reply: {error}")))?;
        match (&head.id, &head.error) {
            (Some(RequestId::Number(number)), _) => {
                self.pending.settle(*number, Reply { head, line });
                Ok(())
            }
            (Some(RequestId::Text(_)), _) => {
                Err(Loss::Protocol("a reply to an id never used".to_owned()))
            }
            // The daemon says these two without an id only to a connection it does not take.
            (None, Some(error))
                if first
                    && matches!(
                        error.code,
                        ErrorCode::LimitReached | ErrorCode::ShuttingDown
                    ) =>
            {
                Err(Loss::TurnedAway(error.clone()))
            }
            (None, Some(error)) => Err(Loss::Protocol(format!(
                "{} ({})",
                text::shorten(&error.message, 200),
                error.code
            ))),
            (None, None) => Err(Loss::Protocol("a reply without an id".to_owned())),
        }
    }

    async fn write(&self, line: &[u8]) -> Result<(), Unsent> {
        let mut unsent = self.unsent.lock().await;
        self.send_all(&mut unsent).await.map_err(|_| Unsent)?;
        let taken = loop {
            match self.stream.try_write(line) {
                Ok(taken) => break taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.writable().await.map_err(|_| Unsent)?;
                }
                Err(_) => return Err(Unsent),
            }
        };
        if taken < line.len() {
            unsent.extend_from_slice(&line[taken..]);
            // From here on the line must be finished, and this caller may be dropped at any await.
            self.half_written.notify_one();
            if self.send_all(&mut unsent).await.is_err() {
                self.deaf.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Finishes the lines of callers that went away in the middle of them.
    async fn finish_lines(&self) -> Infallible {
        loop {
            self.half_written.notified().await;
            let mut unsent = self.unsent.lock().await;
            if self.send_all(&mut unsent).await.is_err() {
                self.deaf.store(true, Ordering::Release);
            }
        }
    }

    /// Writes all of `unsent`. Cancel-safe: what is written is gone from it, the rest is in it.
    async fn send_all(&self, unsent: &mut BytesMut) -> io::Result<()> {
        while !unsent.is_empty() {
            match self.stream.try_write(unsent) {
                Ok(taken) => unsent.advance(taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        // A line can be a megabyte; an idle connection should not keep the room for one.
        *unsent = BytesMut::new();
        Ok(())
    }
}

/// Ends the connection however its task ends, be it by being aborted.
struct End(Arc<Link>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.pending.end(Loss::Gone);
        // Wakes a caller that waits to write, and tells the peer, while callers still hold the
        // stream. It can only fail because the peer was faster.
        rustix::net::shutdown(&self.0.stream, Shutdown::Both).ok();
    }
}
