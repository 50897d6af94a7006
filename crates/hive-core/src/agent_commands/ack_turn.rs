//! `ack_turn`: the turn ended well.

use hive_wire::agent::{AckTurn, TurnClosed};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: AckTurn, reply: Reply<TurnClosed>) {
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| desk.ack_turn(&agent, &command.turn, &command.ids),
        move |outcome| reply.send(outcome),
    );
}
