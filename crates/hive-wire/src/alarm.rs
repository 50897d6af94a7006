//! An alarm for deadlines that nearly always pass unneeded.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is set seldom: setting one earlier than all others takes a system call. One that was
/// set for earlier than is wanted rings early, and is set again then.
#[derive(Debug)]
pub struct Alarm {
    timer: Pin<Box<Sleep>>,
    set_for: Option<Instant>,
}

impl Default for Alarm {
    /// An alarm that is not set, on the runtime that this is called on.
    fn default() -> Self {
        Self {
            timer: Box::pin(sleep_until(Instant::now())),
            set_for: None,
        }
    }
}

impl Alarm {
    /// Waits until `time`.
    ///
    /// Cancel-safe: what it was set for is remembered.
    pub async fn ring(&mut self, time: Instant) {
        loop {
            if self.set_for.is_none_or(|set_for| time < set_for) {
                self.timer.as_mut().reset(time);
                self.set_for = Some(time);
            }
            self.timer.as_mut().await;
            self.set_for = None;
            if Instant::now() >= time {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_when_it_was_last_asked_to() {
        let mut alarm = Alarm::default();
        for (given_up, wanted) in [(50, 5), (5, 50), (20, 20)] {
            let start = Instant::now();
            let after = |millis| start + Duration::from_millis(millis);
            tokio::select! {
                biased;
                () = alarm.ring(after(given_up)) => panic!("it rang at once"),
                () = std::future::ready(()) => {}
            }
            alarm.ring(after(wanted)).await;
            assert!(Instant::now() >= after(wanted), "{given_up}, {wanted}");
        }
    }
}
