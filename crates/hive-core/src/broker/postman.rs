//! Speaks the answers of large groups on a thread of its own, so that the next group is under way
//! while they are encoded and written. A small group's answers are spoken by the broker itself:
//! for one answer, handing it over would take longer than saying it.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::JoinHandle,
};

use super::desk::Answer;

/// From so many answers on, they are handed over.
const MANY: usize = 8;
/// How many groups may wait to be answered; then the broker waits too.
const GROUPS: usize = 2;

#[derive(Debug)]
pub(super) struct Postman {
    bag: SyncSender<Vec<Answer>>,
    thread: JoinHandle<()>,
}

impl Postman {
    pub(super) fn start() -> std::io::Result<Self> {
        let (bag, answers) = sync_channel(GROUPS);
        let thread = std::thread::Builder::new()
            .name("postman".to_owned())
            .spawn(move || deliver(&answers))?;
        Ok(Self { bag, thread })
    }

    /// Answers everybody of a committed group.
    pub(super) fn answer(&self, answers: Vec<Answer>) {
        if answers.len() < MANY {
            return answers.into_iter().for_each(|say| say(None));
        }
        if let Err(unsent) = self.bag.send(answers) {
            tracing::error!("the postman is gone");
            unsent.0.into_iter().for_each(|say| say(None));
        }
    }

    /// Waits until everything is said.
    pub(super) fn stop(self) {
        drop(self.bag);
        if self.thread.join().is_err() {
            tracing::error!("the postman panicked");
        }
    }
}

fn deliver(bag: &Receiver<Vec<Answer>>) {
    while let Ok(answers) = bag.recv() {
        answers.into_iter().for_each(|say| say(None));
    }
}
