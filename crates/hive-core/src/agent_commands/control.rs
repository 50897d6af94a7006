//! `control`: a harness waits for what the host asks of it.

use std::sync::Arc;

use hive_wire::{
    ErrorCode, WireError,
    control::{Control, ControlRequests},
};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Control, reply: Reply<ControlRequests>) {
    let agent = caller.name.clone();
    let harnesses = Arc::clone(&caller.harnesses);
    let stop = caller.stop.clone();
    // Here and not in the task, so that the newest poll is the one that came last.
    let poll = harnesses.begin_poll(&agent, command, &reply.presence());
    caller.tasks.spawn(async move {
        // Cancel-safe: a poll that is dropped leaves its requests to be sent again.
        let outcome = tokio::select! {
            outcome = harnesses.finish_poll(&agent, poll) => outcome,
            () = stop.cancelled() => Err(WireError::new(
                ErrorCode::ShuttingDown,
                "the daemon is stopping",
            )
            .hint("connect again and say `hello`")),
        };
        reply.send(outcome);
    });
}
