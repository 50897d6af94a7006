//! `confirm`: the batch of a receive reached the model.

use hive_store::Mail;
use hive_wire::agent::{Confirm, Confirmed};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Confirm, reply: Reply<Confirmed>) {
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            let confirmed = desk.store(|tx| tx.confirm(&agent, &command.turn, &command.req))?;
            Ok(Confirmed { confirmed })
        },
        move |outcome| reply.send(outcome),
    );
}
