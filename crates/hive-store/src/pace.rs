//! Work that nobody waits for, on a machine where others are waited for.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{getpriority_process, setpriority_process};

/// How long to work before others get the core, should they want it. Left to itself, the scheduler
/// lets whoever works go on for milliseconds.
const TURN: Duration = Duration::from_micros(200);

/// How much nicer a thread is that nobody waits for: a tenth of a core is left to it beside agents that
/// keep every core busy. Not by more: now and then somebody does wait, and then it must not starve.
const NICER: i32 = 10;

/// Makes this thread one that nobody waits for.
pub(crate) fn step_back() {
    let nicer = getpriority_process(None).and_then(|nice| setpriority_process(None, nice + NICER));
    if let Err(error) = nicer {
        tracing::debug!(%error, "a thread in the background is as important as the others");
    }
}

/// Lets others have this core now and then.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// To be called after each small piece of work.
    pub(crate) fn step(&mut self) {
        if self.began.elapsed() >= TURN {
            thread::yield_now();
            self.began = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_steps_back_and_the_others_do_not() {
        let nice = || getpriority_process(None).unwrap();
        let before = nice();
        let stepped_back = thread::spawn(move || {
            step_back();
            nice()
        });
        assert_eq!(stepped_back.join().unwrap(), (before + NICER).min(19));
        assert_eq!(nice(), before);
    }
}
