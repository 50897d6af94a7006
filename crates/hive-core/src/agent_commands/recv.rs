//! `recv`: takes messages out of the caller's inbox, waiting for the first one (T1, M3).

use std::time::Duration;

use hive_store::Receive;
use hive_wire::agent::{MAX_BATCH, MAX_WAIT_SECONDS, Messages, Recv};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Recv, reply: Reply<Messages>) {
    let wait = Duration::from_secs(command.wait_seconds.min(MAX_WAIT_SECONDS).into());
    let receive = Receive {
        agent: caller.name.clone(),
        turn: command.turn,
        req: command.req,
        max: command.max.clamp(1, MAX_BATCH),
        parks: false,
    };
    let presence = reply.presence();
    caller
        .broker
        .receive(receive, wait, presence, move |outcome| reply.send(outcome));
}
