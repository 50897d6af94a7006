//! One connection: reads lines, hands them to a service, and closes when it is time.

use std::{io, pin::pin, sync::Arc, time::Duration};

use hive_wire::{
    ErrorCode, WireError,
    line::{LineBuffer, LineTooLong, MAX_LINE},
    stream::Stream,
};
use tokio::{
    net::UnixStream,
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{Outbox, Reply, outbox::Load};

/// What one socket's commands do.
pub(crate) trait Service: Send + Sync + 'static {
    /// Carries out the command of one line. Whatever it does takes no time here: work that waits
    /// is submitted, and its reply sent later.
    fn call(&self, line: &[u8], outbox: &Arc<Outbox>);

    /// Is told that a peer is gone while requests of it still waited: nobody will read the answers.
    fn hung_up(&self, _outbox: &Arc<Outbox>) {}
}

/// How much one connection may ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The most connections to the socket.
    pub(crate) connections: usize,
    /// The most requests of one connection that wait for their answer.
    pub(crate) in_flight: usize,
    /// How long a line may take from its first byte to its newline.
    pub(crate) line_time: Duration,
    /// How long a peer may leave its replies unread.
    pub(crate) write_time: Duration,
}

impl Limits {
    /// Whether a peer with this load may have one more request under way.
    fn have_room(&self, load: Load) -> bool {
        load.in_flight < self.in_flight && load.unsent < MAX_UNSENT
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            in_flight: 32,
            line_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
        }
    }
}

/// Lines above this size are rare, and only a few connections of a socket read one at a time.
const LARGE_LINE: usize = 64 * 1024;
/// How many connections of one socket read a large line at a time.
pub(super) const LARGE_LINES: usize = 4;
/// With so many bytes unread by the peer, its requests are no longer read.
const MAX_UNSENT: usize = MAX_LINE;
/// How often to look whether a peer that is not read from has hung up: reading would tell.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a connection ends.
enum End {
    /// The peer is gone, or the daemon stops.
    Quietly,
    /// The peer broke a rule and is told.
    With(WireError),
}

/// What a connection shares with the others of its socket.
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) limits: Limits,
    pub(super) large_lines: Semaphore,
}

/// Serves a peer until it is gone, breaks a rule, or the daemon stops.
pub(super) async fn serve<S: Service>(
    stream: UnixStream,
    shared: &Shared<S>,
    stop: &CancellationToken,
) {
    let outbox = match Stream::new(stream) {
        Ok(stream) => Outbox::new(stream),
        Err(error) => return tracing::warn!(%error, "cannot watch a connection"),
    };
    let end = Connection {
        outbox: &outbox,
        shared,
        lines: LineBuffer::new(MAX_LINE),
        may_hold_lines: false,
        large: None,
    }
    .run(stop)
    .await;
    if let End::With(error) = end {
        outbox.expect::<()>(None).send(Err(error));
    }
    // One last try: the peer gets what is ready, and nobody waits for a peer that does not read.
    if outbox.flush().is_err() {
        tracing::debug!("a peer went away with replies unread");
    }
    outbox.close();
    if outbox.load().in_flight > 0 {
        shared.service.hung_up(&outbox);
    }
}

struct Connection<'c, S> {
    outbox: &'c Arc<Outbox>,
    shared: &'c Shared<S>,
    lines: LineBuffer,
    /// Whether whole lines may be left that there was no room for.
    may_hold_lines: bool,
    large: Option<SemaphorePermit<'c>>,
}

impl<S: Service> Connection<'_, S> {
    async fn run(&mut self, stop: &CancellationToken) -> End {
        let mut line_due = None;
        let mut unsent_due = None;
        let mut is_half_closed = false;
        let mut stopped = pin!(stop.cancelled());
        loop {
            if self.may_hold_lines
                && let Err(error) = self.call_whole_lines()
            {
                return End::With(too_long(error));
            }
            let limits = &self.shared.limits;
            let (load, has_room) = self.outbox.look_for_room(|load| limits.have_room(load));
            if self.may_hold_lines && has_room {
                // It has come since the last line was held.
                continue;
            }
            let Load { unsent, in_flight } = load;
            if is_half_closed
                && unsent == 0
                && (in_flight == 0 || self.outbox.stream().has_hung_up())
            {
                return End::Quietly;
            }
            let needs_permit = self.needs_permit();
            let may_read = !is_half_closed && !self.may_hold_lines && has_room;
            // A line that we do not read is not late.
            let is_late = may_read && !needs_permit && self.lines.partial() > 0;
            due_while(&mut line_due, is_late, limits.line_time);
            due_while(&mut unsent_due, unsent > 0, limits.write_time);
            let look_at = (!may_read).then(|| Instant::now() + LOOK_AGAIN);
            // Every arm is cancel-safe: readiness, notifications and timers hold nothing. Deadlines
            // come after what they wait for: a commit that took long is not the peer's fault.
            tokio::select! {
                biased;
                () = &mut stopped => return End::Quietly,
                ready = self.outbox.stream().writable(), if unsent > 0 => {
                    if ready.and_then(|()| self.outbox.flush()).is_err() {
                        return End::Quietly;
                    }
                }
                permit = self.shared.large_lines.acquire(), if needs_permit => {
                    self.large = permit.ok();
                }
                read = read_lines(&mut self.lines, self.outbox, self.shared),
                    if may_read && !needs_permit =>
                {
                    match read {
                        Ok(0) => {
                            self.end_of_input();
                            is_half_closed = true;
                        }
                        Ok(_) => self.may_hold_lines = self.lines.partial() > 0,
                        Err(_) => return End::Quietly,
                    }
                }
                () = at(line_due) => return End::With(too_slow(limits.line_time)),
                () = at(unsent_due) => return End::Quietly,
                () = self.outbox.changed() => {}
                () = at(look_at) => {
                    if self.outbox.stream().has_hung_up() {
                        return End::Quietly;
                    }
                }
            }
        }
    }

    fn needs_permit(&self) -> bool {
        self.large.is_none() && self.lines.partial() > LARGE_LINE
    }

    /// Calls the service for the whole lines that were read, as many as there is room for.
    fn call_whole_lines(&mut self) -> Result<(), LineTooLong> {
        while self.shared.limits.have_room(self.outbox.load()) {
            let Some(line) = self.lines.next_line()? else {
                self.may_hold_lines = false;
                break;
            };
            self.shared.service.call(&line, self.outbox);
        }
        if self.lines.partial() <= LARGE_LINE {
            self.large = None;
        }
        Ok(())
    }

    /// The peer sends no more; what it sent last may lack its newline.
    fn end_of_input(&mut self) {
        if let Some(line) = self.lines.last_line() {
            self.shared.service.call(&line, self.outbox);
        }
        self.outbox.half_close();
    }
}

/// Reads, and calls the service for the whole lines among it, as many as there is room for; the rest
/// is held. 0 at the end of the stream.
///
/// Cancel-safe: a call that is dropped has read nothing.
async fn read_lines<S: Service>(
    lines: &mut LineBuffer,
    outbox: &Arc<Outbox>,
    shared: &Shared<S>,
) -> io::Result<usize> {
    let mut call = |line: &[u8]| {
        let has_room = shared.limits.have_room(outbox.load());
        if has_room {
            shared.service.call(line, outbox);
        }
        has_room
    };
    let stream = outbox.stream();
    stream
        .read_with(|bytes| lines.take_lines(bytes, &mut call))
        .await
}

/// Keeps a deadline while `condition` holds: set when it begins, gone when it ends.
fn due_while(due: &mut Option<Instant>, condition: bool, time: Duration) {
    *due = condition.then(|| due.unwrap_or_else(|| Instant::now() + time));
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn too_long(error: LineTooLong) -> WireError {
    WireError::new(ErrorCode::LineTooLong, error.to_string())
        .hint("send large content as a file and its path as the message")
}

fn too_slow(time: Duration) -> WireError {
    WireError::new(
        ErrorCode::Slow,
        format!("a line took longer than {} s", time.as_secs()),
    )
    .hint("send each request in one piece, with a newline at its end")
}

impl<T: serde::Serialize> Reply<T> {
    /// Refuses a request.
    pub(crate) fn refuse(self, error: WireError) {
        self.send(Err(error));
    }
}
