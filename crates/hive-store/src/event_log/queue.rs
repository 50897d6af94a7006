//! The bounded queue between publishers and the writer thread.
//!
//! Numbers are given out here, under one lock, so the order of the numbers is the order of
//! publishing, and a number without an event is the record of a loss. Publishers wake the writer
//! only when it sleeps with nothing to do or when the queue fills: a flood makes no system call
//! per event.

use std::{
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::{event::Event, stream::StreamMark};

/// An event with its number.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) seq: i64,
    pub(super) event: Event,
    /// Where its own stream stands after it, when it belongs to one.
    pub(super) mark: Option<StreamMark>,
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capacity {
    pub(super) events: usize,
    pub(super) weight: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// The writer waits here.
    work: Condvar,
    /// Those who flush wait here.
    settled: Condvar,
    capacity: Capacity,
}

#[derive(Debug, PartialEq, Eq)]
enum Writer {
    /// It waits for the first event.
    Parked,
    /// It waits for more, until a deadline.
    Lingering,
    /// It works, and looks at the queue before it waits again.
    Awake,
    /// It has ended.
    Gone,
}

#[derive(Debug)]
struct State {
    events: Vec<Numbered>,
    weight: usize,
    /// How many of them belong to streams, and what those weigh.
    streamed: (usize, usize),
    /// The number of the next event.
    next: i64,
    /// Numbers from here on are not reserved on disk yet and must not be given out.
    reserved: i64,
    /// Everything up to here was handed to the writer.
    taken: i64,
    /// Everything up to here is on disk or lost.
    settled: i64,
    lost: u64,
    writer: Writer,
    flushing: bool,
    closed: bool,
}

impl Queue {
    /// A queue that gives out numbers from `next` up to, without, `reserved`.
    pub(super) fn new(capacity: Capacity, next: i64, reserved: i64) -> Self {
        Self {
            state: Mutex::new(State {
                events: Vec::new(),
                weight: 0,
                streamed: (0, 0),
                next,
                reserved,
                taken: next - 1,
                settled: next - 1,
                lost: 0,
                writer: Writer::Awake,
                flushing: false,
                closed: false,
            }),
            work: Condvar::new(),
            settled: Condvar::new(),
            capacity,
        }
    }

    /// Numbers an event and hands it over, or counts it as lost.
    pub(super) fn push(&self, event: Event, weight: usize) {
        self.push_all([(event, weight, None)]);
    }

    /// Numbers events without a number of others in between, and hands them over as far as there is
    /// room; the last number.
    pub(super) fn push_all(
        &self,
        events: impl IntoIterator<Item = (Event, usize, Option<StreamMark>)>,
    ) -> i64 {
        let mut refused = Vec::new();
        let mut state = self.lock();
        for (event, weight, mark) in events {
            refused.extend(self.take_in(&mut state, event, weight, mark));
        }
        let last = state.next - 1;
        let wake = match state.writer {
            Writer::Parked => last > state.taken,
            Writer::Lingering => self.is_filling(&state),
            Writer::Awake | Writer::Gone => false,
        };
        if wake {
            state.writer = Writer::Awake;
        }
        drop(state);
        if wake {
            self.work.notify_one();
        }
        // Large values are freed outside the lock.
        drop(refused);
        last
    }

    /// Numbers one event; gives it back when there is no room for it.
    fn take_in(
        &self,
        state: &mut State,
        event: Event,
        weight: usize,
        mark: Option<StreamMark>,
    ) -> Option<Event> {
        // Only a writer that stands still lets the reserved numbers run out. The queue has been
        // full for long then, so the last number before this point is part of a gap already.
        if state.closed || state.writer == Writer::Gone || state.next >= state.reserved {
            state.lost += 1;
            return Some(event);
        }
        let seq = state.next;
        state.next += 1;
        let (events, weights) = state.streamed;
        // Streams get half of the room: however much they bring, the hive's own events go on.
        let fits = if mark.is_some() {
            events < self.capacity.events / 2 && weights + weight <= self.capacity.weight / 2
        } else {
            true
        };
        let fits = fits
            && state.events.len() < self.capacity.events
            && state.weight + weight <= self.capacity.weight;
        if !fits {
            state.lost += 1;
            return Some(event);
        }
        state.weight += weight;
        if mark.is_some() {
            state.streamed = (events + 1, weights + weight);
        }
        state.events.push(Numbered { seq, event, mark });
        None
    }

    /// Waits for events and swaps them into `into`, which must be empty; returns the last number
    /// that this covers. Until `linger` it waits for more to come, unless the queue fills or
    /// someone flushes. `None` once the queue is closed and empty.
    pub(super) fn take(
        &self,
        into: &mut Vec<Numbered>,
        mut linger: Option<Instant>,
    ) -> Option<i64> {
        let mut state = self.lock();
        loop {
            let pending = state.next - 1 > state.taken;
            let hurry = state.closed || state.flushing || self.is_filling(&state);
            if pending && (hurry || linger.is_none()) {
                break;
            }
            if state.closed {
                return None;
            }
            state.flushing = false;
            if let Some(until) = linger {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    linger = None;
                    continue;
                }
                state.writer = Writer::Lingering;
                state = self
                    .work
                    .wait_timeout(state, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            } else {
                // A burst's buffer is not kept through a quiet time.
                state.events.shrink_to(64);
                into.shrink_to(64);
                state.writer = Writer::Parked;
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.writer = Writer::Awake;
        }
        mem::swap(&mut state.events, into);
        state.weight = 0;
        state.streamed = (0, 0);
        state.taken = state.next - 1;
        Some(state.taken)
    }

    /// Says that everything up to `seq` is on disk, but for `lost` events.
    pub(super) fn settle(&self, seq: i64, lost: u64) {
        let mut state = self.lock();
        state.settled = seq;
        state.lost += lost;
        drop(state);
        self.settled.notify_all();
    }

    /// Allows numbers up to, without, `reserved`.
    pub(super) fn extend(&self, reserved: i64) {
        self.lock().reserved = reserved;
    }

    /// Waits until everything published before is settled or the writer has ended.
    pub(super) fn flush(&self) {
        let mut state = self.lock();
        let target = state.next - 1;
        while state.settled < target && state.writer != Writer::Gone {
            state.flushing = true;
            self.work.notify_one();
            state = self
                .settled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses further events and lets the writer end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_one();
    }

    /// The writer has ended, well or not: nobody may wait for it.
    pub(super) fn writer_gone(&self) {
        self.lock().writer = Writer::Gone;
        self.settled.notify_all();
    }

    /// How many events were lost since the log was opened.
    pub(super) fn lost(&self) -> u64 {
        self.lock().lost
    }

    fn is_filling(&self, state: &State) -> bool {
        state.events.len() > self.capacity.events / 2 || state.weight > self.capacity.weight / 2
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics half-way, so the state is whole even if it is poisoned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hive_wire::Timestamp;
    use serde_json::json;

    use super::*;

    const SMALL: Capacity = Capacity {
        events: 2,
        weight: 1000,
    };

    fn event() -> Event {
        Event {
            at: Timestamp::from_millis(0),
            about: String::new(),
            kind: "test".into(),
            data: json!(null).into(),
        }
    }

    fn take(queue: &Queue, linger: Option<Instant>) -> (Vec<i64>, Option<i64>) {
        let mut events = Vec::new();
        let high = queue.take(&mut events, linger);
        (events.iter().map(|event| event.seq).collect(), high)
    }

    #[test]
    fn what_does_not_fit_still_takes_its_number() {
        let queue = Queue::new(SMALL, 1, 100);
        for _ in 0..5 {
            queue.push(event(), 1);
        }
        assert_eq!(take(&queue, None), (vec![1, 2], Some(5)));
        queue.push(event(), 1);
        queue.push(event(), 1000);
        assert_eq!(take(&queue, None), (vec![6], Some(7)));
        assert_eq!(queue.lost(), 4);
    }

    #[test]
    fn an_event_heavier_than_the_queue_is_a_gap_at_once() {
        let queue = Queue::new(SMALL, 1, 100);
        queue.push(event(), 1001);
        assert_eq!(take(&queue, None), (vec![], Some(1)));
    }

    #[test]
    fn streams_leave_half_of_the_room_to_the_hive_itself() {
        let queue = Queue::new(
            Capacity {
                events: 6,
                weight: 1000,
            },
            1,
            100,
        );
        let mark = || {
            Some(StreamMark {
                epoch: "e".into(),
                next: 1,
            })
        };
        let last = queue.push_all((0..5).map(|_| (event(), 1, mark())));
        assert_eq!(last, 5, "each takes its number");
        for _ in 0..3 {
            queue.push(event(), 1);
        }
        assert_eq!(take(&queue, None), (vec![1, 2, 3, 6, 7, 8], Some(8)));
        assert_eq!(queue.lost(), 2);
    }

    #[test]
    fn numbers_that_are_not_reserved_are_not_given_out() {
        let queue = Queue::new(SMALL, 1, 2);
        queue.push(event(), 1);
        queue.push(event(), 1);
        assert_eq!(take(&queue, None), (vec![1], Some(1)));
        queue.extend(10);
        queue.push(event(), 1);
        assert_eq!(take(&queue, None), (vec![2], Some(2)));
    }

    #[test]
    fn a_full_queue_and_a_closed_one_end_the_linger() {
        let never = || Instant::now().checked_add(Duration::from_secs(3600));
        let queue = Queue::new(SMALL, 1, 100);
        queue.push(event(), 1);
        queue.push(event(), 1);
        assert_eq!(take(&queue, never()), (vec![1, 2], Some(2)));
        queue.push(event(), 1);
        queue.close();
        queue.push(event(), 1);
        assert_eq!(take(&queue, never()), (vec![3], Some(3)));
        assert_eq!(take(&queue, never()), (vec![], None));
        assert_eq!(queue.lost(), 1);
    }
}
