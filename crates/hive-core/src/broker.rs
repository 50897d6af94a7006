//! The broker: decides what is written, commits it in groups, and answers only afterwards.
//!
//! One thread owns the store, the roster and the parked receivers, so that none of them needs a
//! lock and every rule sees one consistent hive. Work reaches it as jobs; it takes all that wait,
//! runs them as operations of one group, commits, and then answers them: receivers first, because
//! somebody waits there. The agents' connections live on the same thread, so that a request is
//! read, carried out, committed and answered without waking another one. With one client there is
//! no added delay; under load, whatever arrived during one commit is the next group.
//!
//! The same thread fires reminders and expiries and does the chores, each from one next time: an
//! idle broker sleeps.

mod agenda;
mod askers;
mod chores;
mod desk;
mod lobby;
mod queue;
mod report;
mod schedules;
mod writer;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hive_store::Receive;
use hive_wire::{
    AgentName, ErrorCode, QuestionId, WireError,
    agent::{Asked, Messages},
};
use tokio::{
    runtime::{EnterGuard, Handle},
    sync::oneshot,
};

use askers::Asker;
pub use desk::Desk;
pub use lobby::Presence;
use queue::{Found, Queue};
pub use writer::{Parts, Writer};

/// A handle for submitting work; share it freely.
#[derive(Clone)]
pub struct Broker {
    queue: Arc<Queue>,
    runtime: Handle,
}

/// One piece of work for the broker's thread.
trait Job: Send {
    /// Runs as an operation of the group; whatever it answers waits for the commit.
    fn run(self: Box<Self>, desk: &mut Desk<'_>);

    /// Is told that it will not run.
    fn refuse(self: Box<Self>, error: WireError);
}

/// A job made of an operation and what to do with its outcome.
struct Task<Operation, Done> {
    operation: Operation,
    done: Done,
}

impl<T, Operation, Done> Job for Task<Operation, Done>
where
    T: Send + 'static,
    Operation: FnOnce(&mut Desk<'_>) -> Result<T, WireError> + Send,
    Done: FnOnce(Result<T, WireError>) + Send + 'static,
{
    fn run(self: Box<Self>, desk: &mut Desk<'_>) {
        let outcome = (self.operation)(desk);
        desk.answer(outcome, self.done);
    }

    fn refuse(self: Box<Self>, error: WireError) {
        (self.done)(Err(error));
    }
}

/// A receive that may have to wait.
struct ReceiveJob<Done> {
    receive: Receive,
    deadline: Option<Instant>,
    presence: Arc<dyn Presence>,
    done: Done,
}

impl<Done> Job for ReceiveJob<Done>
where
    Done: FnOnce(Result<Messages, WireError>) + Send + 'static,
{
    fn run(self: Box<Self>, desk: &mut Desk<'_>) {
        desk.receive(
            self.receive,
            self.deadline,
            self.presence,
            Box::new(self.done),
        );
    }

    fn refuse(self: Box<Self>, error: WireError) {
        (self.done)(Err(error));
    }
}

/// A question whose asker waits for the answer.
struct AskJob<Operation, Done> {
    operation: Operation,
    agent: AgentName,
    presence: Arc<dyn Presence>,
    done: Done,
}

impl<Operation, Done> Job for AskJob<Operation, Done>
where
    Operation: FnOnce(&mut Desk<'_>) -> Result<QuestionId, WireError> + Send,
    Done: FnOnce(Result<Asked, WireError>) + Send + 'static,
{
    fn run(self: Box<Self>, desk: &mut Desk<'_>) {
        match (self.operation)(desk) {
            Err(error) => desk.answer(Err(error), self.done),
            Ok(question) => {
                let asker = Asker {
                    agent: self.agent,
                    presence: self.presence,
                    done: Box::new(self.done),
                };
                desk.askers.park(question, asker);
            }
        }
    }

    fn refuse(self: Box<Self>, error: WireError) {
        (self.done)(Err(error));
    }
}

impl Broker {
    /// While the guard lives, sockets that are opened and tasks that are spawned belong to the
    /// broker's own thread: what they submit is taken up without waking another one.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Submits an operation. `done` is called on the broker's thread once the group is durable, or
    /// with why it was not; on the caller's own when the broker is stopping.
    pub fn submit<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Desk<'_>) -> Result<T, WireError> + Send + 'static,
        done: impl FnOnce(Result<T, WireError>) + Send + 'static,
    ) {
        self.queue.push(Box::new(Task { operation, done }));
    }

    /// Submits an operation and waits for it to be durable.
    ///
    /// # Errors
    /// The operation's own, or why its group was not committed.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Desk<'_>) -> Result<T, WireError> + Send + 'static,
    ) -> Result<T, WireError> {
        let (sender, receiver) = oneshot::channel();
        self.submit(operation, move |outcome| {
            // The asker may have gone; what it asked for is done all the same.
            drop(sender.send(outcome));
        });
        receiver.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Submits a receive that waits up to `wait` for its first message, as long as `presence` says
    /// that somebody is there to take it.
    pub fn receive(
        &self,
        receive: Receive,
        wait: Duration,
        presence: Arc<dyn Presence>,
        done: impl FnOnce(Result<Messages, WireError>) + Send + 'static,
    ) {
        let deadline = (!wait.is_zero()).then(|| Instant::now() + wait);
        self.queue.push(Box::new(ReceiveJob {
            receive,
            deadline,
            presence,
            done,
        }));
    }

    /// Submits an operation that asks a question. `done` is called with the answer once there is
    /// one; when the agent hangs up first, the question is taken back.
    pub fn ask_and_wait(
        &self,
        operation: impl FnOnce(&mut Desk<'_>) -> Result<QuestionId, WireError> + Send + 'static,
        agent: AgentName,
        presence: Arc<dyn Presence>,
        done: impl FnOnce(Result<Asked, WireError>) + Send + 'static,
    ) {
        self.queue.push(Box::new(AskJob {
            operation,
            agent,
            presence,
            done,
        }));
    }

    /// Lets the broker finish what it has and end; parked receivers are told.
    pub fn stop(&self) {
        self.queue.stop();
    }
}

/// The error of work that comes too late.
fn stopping() -> WireError {
    WireError::new(ErrorCode::ShuttingDown, "the daemon is stopping")
        .hint("try again when it is back")
}
