//! `wake`: a message into the caller's own inbox under a label that is nobody's name (M16).

use hive_store::NewMessage;
use hive_wire::{
    ErrorCode, WireError,
    agent::{Sent, Wake},
};

use super::{Caller, check_body, once::Once};
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Wake, reply: Reply<Sent>) {
    if let Err(error) = check_body("body", &command.body) {
        return reply.refuse(error);
    }
    if command.transient && command.key.is_some() {
        return reply.refuse(WireError::new(
            ErrorCode::BadRequest,
            "a transient message has no `key`: it is not on disk, and so neither is its key",
        ));
    }
    let agent = caller.name.clone();
    let once = Once::of(&command, command.key.as_ref());
    caller.broker.submit(
        move |desk| {
            let from = desk.roster.wake_label(&command.from)?;
            once.run(desk, &agent, |desk| {
                desk.send(NewMessage {
                    transient: command.transient,
                    ..NewMessage::plain(from, agent.clone().into(), command.body)
                })
            })
        },
        move |outcome| reply.send(outcome),
    );
}
