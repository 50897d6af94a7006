//! `requeue_inflight`: the turn did not end well, and gives back what it holds.

use hive_wire::agent::{RequeueInflight, TurnClosed};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: RequeueInflight, reply: Reply<TurnClosed>) {
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| desk.requeue(&agent, &command.turn, command.reason),
        move |outcome| reply.send(outcome),
    );
}
