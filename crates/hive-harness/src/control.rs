//! The control channel: waits for what the host asks of this harness, and carries results back.
//!
//! A request keeps its number until it is answered. One that comes again is answered from memory;
//! one that is under way is left alone. At most one poll is out; when a result is ready before the
//! host has a further request, a new poll takes its place, and says `hello` so that nothing that
//! the old one may have carried is lost.

pub mod orders;

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hive_wire::{
    ControlId,
    control::{Control, ControlAction, ControlDone, ControlRequest, MAX_DONE},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::orders::Orders;
use crate::{
    bus::Bus,
    environment::Environment,
    login::LoginDesk,
    model::{check_model_name, choose_model},
    surface::{HostChannel, SurfaceError},
};

/// How long one poll waits at the host.
const POLL_SECONDS: u32 = 120;
/// How many answered requests are remembered.
const REMEMBERED: usize = 256;
/// The pause after a poll that failed; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What became of the host's requests.
#[derive(Debug, Default)]
pub struct Answers {
    inner: Mutex<Inner>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// The requests seen lately, oldest first, with their result once there is one.
    known: VecDeque<(ControlId, Option<ControlDone>)>,
    /// Results that the host has not been told yet.
    untold: Vec<ControlDone>,
}

/// Whether a request is to be carried out.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// It is new.
    New,
    /// It is under way, or its result is on its way to the host again.
    Before,
}

impl Answers {
    /// Answers a request.
    pub fn answer(&self, request_id: ControlId, result: Result<String, String>) {
        let (ok, note) = match result {
            Ok(note) => (true, note),
            Err(note) => (false, note),
        };
        let done = ControlDone {
            request_id,
            ok,
            note: Some(note).filter(|note| !note.is_empty()),
        };
        let mut inner = self.lock();
        if let Some((_, result)) = inner.known.iter_mut().find(|(id, _)| *id == request_id) {
            *result = Some(done.clone());
        }
        inner.untold.push(done);
        drop(inner);
        self.ready.notify_one();
    }

    /// Takes note of a request. One that was answered before is answered again.
    fn see(&self, request_id: ControlId) -> Seen {
        let mut inner = self.lock();
        let known = inner.known.iter().find(|(id, _)| *id == request_id);
        if let Some((_, result)) = known {
            if let Some(done) = result.clone() {
                inner.untold.push(done);
            }
            return Seen::Before;
        }
        if inner.known.len() == REMEMBERED {
            inner.known.pop_front();
        }
        inner.known.push_back((request_id, None));
        Seen::New
    }

    /// Results to tell the host next.
    fn untold(&self) -> Vec<ControlDone> {
        let inner = self.lock();
        inner.untold.iter().take(MAX_DONE).cloned().collect()
    }

    /// The host has been told these.
    fn told(&self, done: &[ControlDone]) {
        self.lock().untold.retain(|result| !done.contains(result));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a request is passed on to.
#[derive(Debug)]
pub struct Desk<'a> {
    /// What the loop is asked to do.
    pub orders: &'a Orders,
    /// Where results go.
    pub answers: &'a Answers,
    /// Who runs logins.
    pub login: &'a LoginDesk,
    /// Whom to tell of changes.
    pub bus: &'a Bus,
    /// How the harness is set up.
    pub environment: &'a Environment,
}

impl Desk<'_> {
    /// Takes requests until `done`.
    pub async fn run(&self, host: &impl HostChannel, done: &CancellationToken) {
        let mut hello = true;
        let mut pause = FIRST_PAUSE;
        loop {
            let untold = self.answers.untold();
            let poll = Control {
                wait_seconds: POLL_SECONDS,
                hello,
                done: untold.clone(),
            };
            // A poll that is dropped may have carried a request: the next one says hello, and the
            // host sends it again. A notice that is dropped has been acted on.
            let outcome = tokio::select! {
                outcome = host.control(&poll) => outcome,
                () = self.answers.ready.notified() => {
                    hello = true;
                    continue;
                }
                () = done.cancelled() => return,
            };
            match outcome {
                Ok(requests) => {
                    self.answers.told(&untold);
                    hello = false;
                    pause = FIRST_PAUSE;
                    for request in requests {
                        self.take(request).await;
                    }
                }
                Err(error) => {
                    if let SurfaceError::Refused(error) = &error {
                        tracing::warn!(%error, "the host does not take the control poll");
                        pause = LONGEST_PAUSE;
                    }
                    // Whoever answers next may be a new host, which knows nothing of this harness.
                    hello = true;
                    self.bus.repeat_state();
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = done.cancelled() => return,
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn take(&self, request: ControlRequest) {
        let id = request.request_id;
        if self.answers.see(id) == Seen::Before {
            return;
        }
        tracing::info!(
            request = id.0,
            kind = request.action.kind(),
            "the host asks"
        );
        let result = match request.action {
            ControlAction::Interrupt => self.orders.interrupt(),
            ControlAction::Compact => match self.orders.compact(id) {
                // Answered when it is done.
                Ok(()) => return,
                Err(why) => Err(why),
            },
            ControlAction::NewSession => {
                self.orders.new_session();
                Ok("the next turn begins a new session".to_owned())
            }
            ControlAction::Model { name } => self.choose_model(&name),
            ControlAction::LoginStart => self.login.start().await,
            ControlAction::LoginInput { text } => self.login.input(text).await,
            ControlAction::LoginCancel => self.login.cancel().await,
            ControlAction::Hold { until, reason } => {
                self.orders.hold(until, &reason);
                Ok(format!("no turn begins before {until}"))
            }
            ControlAction::Release => {
                self.orders.release();
                Ok("released".to_owned())
            }
            ControlAction::ToolGroups { groups } => {
                // Words of a newer host grant nothing here.
                let known = groups.iter().filter_map(|word| word.parse().ok());
                self.orders.set_tool_groups(known.collect());
                Ok("the next turn has the tools of these groups".to_owned())
            }
            ControlAction::Pause { reason, now } => {
                self.orders.pause(&reason, now);
                Ok("no turn begins until it is resumed".to_owned())
            }
            ControlAction::Resume => {
                self.orders.resume();
                Ok("resumed".to_owned())
            }
            ControlAction::Stop => {
                self.orders.stop();
                Ok("stopping".to_owned())
            }
        };
        self.answers.answer(id, result);
    }

    fn choose_model(&self, name: &str) -> Result<String, String> {
        check_model_name(name).map_err(|error| error.to_string())?;
        choose_model(&self.environment.places.model_file, name).map_err(|e| e.to_string())?;
        self.bus
            .set_model(name, self.environment.windows.tokens(name));
        Ok(format!("{name} from the next turn on"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(id: i64, ok: bool, note: &str) -> ControlDone {
        ControlDone {
            request_id: ControlId(id),
            ok,
            note: Some(note.to_owned()),
        }
    }

    #[test]
    fn a_request_is_carried_out_once_and_answered_as_often_as_it_comes() {
        let answers = Answers::default();
        assert_eq!(answers.see(ControlId(1)), Seen::New);
        assert_eq!(answers.see(ControlId(1)), Seen::Before);
        assert_eq!(answers.untold(), [], "it is under way");
        answers.answer(ControlId(1), Err("no turn".to_owned()));
        let untold = answers.untold();
        assert_eq!(untold, [done(1, false, "no turn")]);
        answers.told(&untold);
        assert_eq!(answers.untold(), []);
        assert_eq!(answers.see(ControlId(1)), Seen::Before);
        assert_eq!(answers.untold(), [done(1, false, "no turn")], "from memory");
    }

    #[test]
    fn memory_of_requests_is_bounded() {
        let answers = Answers::default();
        for id in 0..1_000 {
            assert_eq!(answers.see(ControlId(id)), Seen::New);
        }
        assert_eq!(answers.lock().known.len(), REMEMBERED);
        assert_eq!(answers.see(ControlId(999)), Seen::Before);
    }
}
