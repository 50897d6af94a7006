//! `wake`: a message into the caller's own inbox under a label that is nobody's name (M16).

use hive_store::NewMessage;
use hive_wire::agent::{Sent, Wake};

use super::{Caller, check_body};
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Wake, reply: Reply<Sent>) {
    if let Err(error) = check_body("body", &command.body) {
        return reply.refuse(error);
    }
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            let from = desk.roster.wake_label(&command.from)?;
            desk.send(NewMessage {
                transient: command.transient,
                ..NewMessage::plain(from, agent.into(), command.body)
            })
        },
        move |outcome| reply.send(outcome),
    );
}
