//! The queue from a running turn to whoever watches it.
//!
//! Bounded in events and bytes. It holds back the engine for a moment when the reader is slow, and
//! leaves events out when that does not help: the reader finds a [`EngineEvent::Gap`] with their
//! number in their place. What a turn is judged by does not pass through here.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::EngineEvent;

/// How many events wait for the reader.
const MAX_EVENTS: usize = 1024;
/// How many bytes they may have together.
const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something to read, or there never will be.
    ready: Notify,
    /// There is room, or nobody reads any more.
    room: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<EngineEvent>,
    bytes: usize,
    /// Left out since the last event that is in the queue.
    dropped: u64,
    writer_gone: bool,
    reader_gone: bool,
}

/// A new queue.
pub(super) fn queue() -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The turn's end of the queue.
#[derive(Debug)]
pub(super) struct Sender(Arc<Shared>);

impl Sender {
    /// Puts an event into the queue, or gives it back when there is no room.
    pub(super) fn offer(&self, event: EngineEvent) -> Result<(), EngineEvent> {
        let mut queue = self.0.lock();
        if queue.reader_gone {
            return Ok(());
        }
        let weight = weight(&event);
        let full = queue.events.len() + 1 >= MAX_EVENTS || queue.bytes + weight > MAX_BYTES;
        if full && !queue.events.is_empty() {
            return Err(event);
        }
        if let Some(gap) = queue.take_gap() {
            queue.events.push_back(gap);
        }
        queue.bytes += weight;
        queue.events.push_back(event);
        self.0.ready.notify_one();
        Ok(())
    }

    /// Counts an event that is left out.
    pub(super) fn leave_out(&self) {
        self.0.lock().dropped += 1;
    }

    /// Waits until the reader took something. Cancel-safe.
    pub(super) async fn room(&self) {
        self.0.room.notified().await;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.lock().writer_gone = true;
        self.0.ready.notify_one();
    }
}

/// The reader's end of the queue.
#[derive(Debug)]
pub(super) struct Receiver(Arc<Shared>);

impl Receiver {
    /// The next event; none once the turn is over and all are read. Cancel-safe.
    pub(super) async fn recv(&mut self) -> Option<EngineEvent> {
        loop {
            {
                let mut queue = self.0.lock();
                if let Some(event) = queue.events.pop_front() {
                    queue.bytes -= weight(&event);
                    self.0.room.notify_one();
                    return Some(event);
                }
                if queue.writer_gone {
                    return queue.take_gap();
                }
            }
            self.0.ready.notified().await;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.reader_gone = true;
        queue.events.clear();
        self.0.room.notify_one();
    }
}

impl Queue {
    fn take_gap(&mut self) -> Option<EngineEvent> {
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0).then_some(EngineEvent::Gap { dropped })
    }
}

impl Shared {
    /// No code panics while it holds the lock, so that a poisoned one holds a queue in order.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(event: &EngineEvent) -> usize {
    match event {
        EngineEvent::Line(value) => value.get().len(),
        EngineEvent::Oversize { head: text, .. }
        | EngineEvent::Stray(text)
        | EngineEvent::Stderr(text) => text.len(),
        EngineEvent::Gap { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> EngineEvent {
        EngineEvent::Stderr(text.to_owned())
    }

    #[tokio::test]
    async fn a_full_queue_gives_back_and_a_gap_stands_where_events_were_left_out() {
        let (sender, mut receiver) = queue();
        let mut sent = 0;
        while sender.offer(note("x")).is_ok() {
            sent += 1;
        }
        assert!(sent < MAX_EVENTS);
        sender.leave_out();
        sender.leave_out();
        for _ in 0..sent {
            assert!(matches!(
                receiver.recv().await,
                Some(EngineEvent::Stderr(_))
            ));
        }
        sender.room().await;
        sender.offer(note("after")).expect("there is room");
        sender.leave_out();
        drop(sender);
        let rest = [
            receiver.recv().await,
            receiver.recv().await,
            receiver.recv().await,
        ];
        assert!(matches!(rest[0], Some(EngineEvent::Gap { dropped: 2 })));
        assert!(matches!(rest[1], Some(EngineEvent::Stderr(_))));
        assert!(matches!(rest[2], Some(EngineEvent::Gap { dropped: 1 })));
        assert!(receiver.recv().await.is_none());
    }

    #[test]
    fn bytes_are_bounded_too_and_one_large_event_always_fits() {
        let (sender, _receiver) = queue();
        let large = "x".repeat(MAX_BYTES * 2);
        sender
            .offer(note(&large))
            .expect("an empty queue takes anything");
        assert!(sender.offer(note("y")).is_err());
    }

    #[test]
    fn a_queue_that_nobody_reads_is_no_obstacle() {
        let (sender, receiver) = queue();
        drop(receiver);
        for _ in 0..MAX_EVENTS * 2 {
            sender.offer(note("x")).expect("thrown away");
        }
    }
}
