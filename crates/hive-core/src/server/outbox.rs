//! Replies on their way to a peer, in the right order.
//!
//! Requests without an id are answered in the order they came; those with one as soon as they are
//! done. Replies are written by whoever has them, usually the broker right after a commit: going
//! through the connection's own task would cost a thread switch on every answer. Only what the
//! socket does not take at once waits for that task.
//!
//! The answers of a group are written one right after the other ([`together`]): a client that is
//! awake for the first of them need not be woken for each of the others.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    io,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use hive_wire::{
    ErrorCode, WireError,
    command::{RequestId, with_reply},
    stream::Stream,
};
use serde::Serialize;

use crate::broker::Presence;

/// How many bytes of replies are held back at most.
const MAX_HELD: usize = 256 * 1024;

/// Replies that this thread holds back while it answers a group.
#[derive(Default)]
struct Held {
    outboxes: Vec<Arc<Outbox>>,
    bytes: usize,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Writes the replies that `answer` makes on this thread when all of them are encoded.
pub(crate) fn together(answer: impl FnOnce()) {
    HELD.set(Some(Held::default()));
    answer();
    HELD.take().unwrap_or_default().write();
}

impl Held {
    fn write(self) {
        for outbox in self.outboxes {
            outbox.write_held();
        }
    }
}

/// The way back to one peer.
pub(crate) struct Outbox {
    stream: Stream,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Replies to requests without an id, from the oldest that is not answered.
    ordered: VecDeque<Option<Vec<u8>>>,
    /// The number of the first of them.
    first: u64,
    /// Bytes that the socket did not take.
    unsent: VecDeque<u8>,
    /// Requests whose replies were not written, be it that they wait for an earlier one.
    in_flight: usize,
    /// Those among them whose replies may fill a line.
    batches: usize,
    is_closed: bool,
    /// Whether the peer has said that it sends no more.
    is_half_closed: bool,
    /// Whether the connection's task reads no further until replies are written.
    waits_for_room: bool,
    /// Whether something changed that the connection's task has to deal with.
    has_changed: bool,
    /// That task, while it waits for a change.
    task: Option<Waker>,
}

/// Where in the order a reply belongs.
enum Place {
    Ordered(u64),
    Named(RequestId),
}

/// How much a peer has under way.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Bytes that the socket did not take.
    pub(super) unsent: usize,
    /// Requests whose replies were not written.
    pub(super) in_flight: usize,
}

impl State {
    fn load(&self) -> Load {
        Load {
            unsent: self.unsent.len(),
            in_flight: self.in_flight,
        }
    }
}

/// The most requests of one connection whose replies may fill a line: with all that a connection
/// may have in flight, a few bytes each would cost the daemon megabytes.
const MAX_BATCHES: usize = 4;

/// The duty to answer one request with a `T`; dropping it leaves the request unanswered.
pub(crate) struct Reply<T> {
    outbox: Arc<Outbox>,
    place: Place,
    is_batch: bool,
    reply: PhantomData<fn(T)>,
}

impl<T: Serialize> Reply<T> {
    /// Answers.
    pub(crate) fn send(self, outcome: Result<T, WireError>) {
        let id = match &self.place {
            Place::Ordered(_) => None,
            Place::Named(id) => Some(id),
        };
        with_reply(outcome.as_ref(), id, |line| {
            self.outbox.complete(&self.place, self.is_batch, line);
        });
    }

    /// Somebody to ask whether the peer is still there.
    pub(crate) fn presence(&self) -> Arc<dyn Presence> {
        Arc::clone(&self.outbox) as Arc<dyn Presence>
    }
}

impl Outbox {
    pub(super) fn new(stream: Stream) -> Arc<Self> {
        Arc::new(Self {
            stream,
            state: Mutex::default(),
        })
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Waits for something that the connection's task has to deal with.
    ///
    /// Cancel-safe: a change that is not taken note of stays.
    pub(super) fn changed(&self) -> impl Future<Output = ()> {
        poll_fn(|cx| {
            let mut state = self.lock();
            if std::mem::take(&mut state.has_changed) {
                return Poll::Ready(());
            }
            match &mut state.task {
                Some(task) => task.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
    }

    /// Takes on the duty to answer a request.
    pub(crate) fn expect<T>(self: &Arc<Self>, id: Option<RequestId>) -> Reply<T> {
        let mut state = self.lock();
        state.in_flight += 1;
        let place = match id {
            Some(id) => Place::Named(id),
            None => {
                let number = state.first + state.ordered.len() as u64;
                state.ordered.push_back(None);
                Place::Ordered(number)
            }
        };
        Reply {
            outbox: Arc::clone(self),
            place,
            is_batch: false,
            reply: PhantomData,
        }
    }

    /// Takes on the duty to answer a request whose reply may fill a line; none when the peer has
    /// too many of them under way, who is told.
    pub(crate) fn expect_batch<T: Serialize>(
        self: &Arc<Self>,
        id: Option<RequestId>,
    ) -> Option<Reply<T>> {
        let mut reply = self.expect(id);
        let mut state = self.lock();
        if state.batches < MAX_BATCHES {
            state.batches += 1;
            reply.is_batch = true;
            return Some(reply);
        }
        drop(state);
        let error = WireError::new(
            ErrorCode::LimitReached,
            format!("this connection has {MAX_BATCHES} receives under way"),
        );
        reply.send(Err(
            error.hint("wait for one of them, or open another connection")
        ));
        None
    }

    pub(super) fn load(&self) -> Load {
        self.lock().load()
    }

    /// The load, and whether it leaves room. Where it does not, the connection's task is told of the
    /// next reply.
    pub(super) fn look_for_room(&self, has_room: impl FnOnce(Load) -> bool) -> (Load, bool) {
        let mut state = self.lock();
        let load = state.load();
        let has_room = has_room(load);
        state.waits_for_room = !has_room;
        (load, has_room)
    }

    /// The peer sends no more; it may still read.
    pub(super) fn half_close(&self) {
        self.lock().is_half_closed = true;
    }

    /// Nobody is there any more: what comes is thrown away.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.unsent = VecDeque::new();
        state.task = None;
    }

    /// Writes what the socket did not take before.
    pub(super) fn flush(&self) -> io::Result<()> {
        let mut state = self.lock();
        while !state.unsent.is_empty() {
            match self.stream.try_write(state.unsent.as_slices().0) {
                Ok(written) => drop(state.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        state.unsent.shrink_to(4096);
        Ok(())
    }

    fn complete(self: &Arc<Self>, place: &Place, is_batch: bool, line: &[u8]) {
        let is_held = HELD.with_borrow(Option::is_some);
        let mut state = self.lock();
        state.batches -= usize::from(is_batch);
        match place {
            Place::Ordered(number) if *number > state.first => {
                let slot = usize::try_from(number - state.first).unwrap_or(usize::MAX);
                if let Some(slot) = state.ordered.get_mut(slot) {
                    *slot = Some(line.to_vec());
                }
            }
            Place::Ordered(_) => {
                self.write_ordered(&mut state, line, is_held);
                while let Some(Some(line)) = state.ordered.front_mut().map(Option::take) {
                    self.write_ordered(&mut state, &line, is_held);
                }
            }
            Place::Named(_) => {
                state.in_flight -= 1;
                self.write(&mut state, line, is_held);
            }
        }
        if is_held {
            drop(state);
            self.hold_back(line.len());
        } else {
            Self::tell_task(state);
        }
    }

    /// Writes the oldest reply of those that come in order.
    fn write_ordered(&self, state: &mut State, line: &[u8], is_held: bool) {
        state.ordered.pop_front();
        state.first += 1;
        state.in_flight -= 1;
        self.write(state, line, is_held);
    }

    /// Leaves what is unsent until the other answers of the group are ready too, or until enough is
    /// held back.
    fn hold_back(self: &Arc<Self>, bytes: usize) {
        let full = HELD.with_borrow_mut(|held| {
            let held = held.as_mut()?;
            held.outboxes.push(Arc::clone(self));
            held.bytes += bytes;
            (held.bytes > MAX_HELD).then(|| std::mem::take(held))
        });
        if let Some(full) = full {
            full.write();
        }
    }

    /// Writes what was held back.
    fn write_held(&self) {
        let is_gone = self.flush().is_err();
        let mut state = self.lock();
        if is_gone {
            // The connection's task sees the same on its next read, and ends.
            state.unsent = VecDeque::new();
        }
        Self::tell_task(state);
    }

    /// Tells the connection's task of what it has to deal with. Most replies are none of its business.
    fn tell_task(mut state: MutexGuard<'_, State>) {
        if state.unsent.is_empty() && !state.is_half_closed && !state.waits_for_room {
            return;
        }
        state.has_changed = true;
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }

    fn write(&self, state: &mut State, line: &[u8], is_held: bool) {
        if state.is_closed {
            return;
        }
        let mut rest = line;
        while !is_held && state.unsent.is_empty() && !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The connection's task sees the same on its next read, and ends.
                Err(_) => return,
            }
        }
        state.unsent.extend(rest);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presence for Outbox {
    /// A peer that half closed its connection may still read; one that hung up may not.
    fn is_there(&self) -> bool {
        let (is_closed, is_half_closed) = {
            let state = self.lock();
            (state.is_closed, state.is_half_closed)
        };
        !is_closed && (!is_half_closed || !self.stream.has_hung_up())
    }

    fn is_still_there(&self) -> bool {
        !self.lock().is_closed && !self.stream.has_hung_up()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::net::UnixStream, time::Duration};

    use hive_wire::agent::Confirmed;

    use super::*;

    fn connect() -> (Arc<Outbox>, UnixStream) {
        let (ours, peer) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        peer.set_nonblocking(true).unwrap();
        let ours = tokio::net::UnixStream::from_std(ours).unwrap();
        (Outbox::new(Stream::new(ours).unwrap()), peer)
    }

    fn answer(reply: Reply<Confirmed>, number: u32) {
        reply.send(Ok(Confirmed { confirmed: number }));
    }

    fn line(number: u32) -> String {
        format!("{{\"ok\":true,\"confirmed\":{number}}}\n")
    }

    /// What the peer finds when it looks.
    fn arrived(mut peer: &UnixStream) -> String {
        let mut bytes = Vec::new();
        let error = peer.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn replies_that_are_held_back_are_written_in_their_order() {
        let (outbox, peer) = connect();
        let replies: Vec<_> = (0..3).map(|_| outbox.expect(None)).collect();
        together(|| {
            for (reply, number) in replies.into_iter().rev().zip([3, 2, 1]) {
                answer(reply, number);
            }
            assert_eq!(arrived(&peer), "");
        });
        assert_eq!(arrived(&peer), line(1) + &line(2) + &line(3));
        answer(outbox.expect(None), 4);
        assert_eq!(arrived(&peer), line(4), "at once, as before");
        assert_eq!(outbox.load().in_flight, 0);
    }

    #[tokio::test]
    async fn the_task_is_told_of_a_change_whether_it_waits_already_or_not() {
        let (outbox, _peer) = connect();
        let replies: Vec<_> = (0..3).map(|_| outbox.expect(None)).collect();
        let [first, second, _under_way] = replies.try_into().ok().unwrap();
        outbox.look_for_room(|_| false);
        answer(first, 1);
        outbox.changed().await;
        tokio::join!(outbox.changed(), async {
            tokio::task::yield_now().await;
            answer(second, 2);
        });
        let again = tokio::time::timeout(Duration::from_millis(5), outbox.changed());
        assert!(again.await.is_err(), "it was told");
    }

    #[tokio::test]
    async fn a_task_that_waits_for_room_is_told_when_everything_is_answered_at_once() {
        let (outbox, _peer) = connect();
        for room in [false, true] {
            let replies: Vec<_> = (0..2).map(|_| outbox.expect(None)).collect();
            let (load, has_room) = outbox.look_for_room(|load| room || load.in_flight < 2);
            assert_eq!((load.in_flight, has_room), (2, room));
            together(|| {
                for reply in replies {
                    answer(reply, 1);
                }
            });
            assert_eq!(outbox.load().in_flight, 0);
            let told = tokio::time::timeout(Duration::from_millis(5), outbox.changed());
            assert_eq!(told.await.is_ok(), !room);
        }
    }

    #[tokio::test]
    async fn what_is_held_back_has_an_end_and_nothing_is_lost() {
        let (outbox, peer) = connect();
        let (mut sent, mut received) = (String::new(), String::new());
        together(|| {
            while sent.len() <= MAX_HELD {
                answer(outbox.expect(None), 1_000_000);
                sent += &line(1_000_000);
            }
            received += &arrived(&peer);
            assert!(!received.is_empty(), "written although the group goes on");
            answer(outbox.expect(None), 2);
            sent += &line(2);
        });
        // The connection's task does this when the peer has room again.
        while outbox.load().unsent > 0 {
            received += &arrived(&peer);
            outbox.flush().unwrap();
        }
        received += &arrived(&peer);
        assert!(
            received == sent,
            "{} of {} bytes",
            received.len(),
            sent.len()
        );
    }
}
