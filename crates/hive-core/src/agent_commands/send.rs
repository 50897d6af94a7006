//! `send`: stores a message for a peer, the operator or the parent (M2).

use hive_store::NewMessage;
use hive_wire::agent::{Send, Sent};

use super::{Caller, check_body};
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Send, reply: Reply<Sent>) {
    if let Err(error) = check_body("body", &command.body) {
        return reply.refuse(error);
    }
    let sender = caller.name.clone();
    let config = caller.approvals.configs.get(&sender);
    caller.broker.submit(
        move |desk| {
            let to = desk.roster.route(Some(&sender), &command.to)?;
            desk.roster.may_write(&sender, &to, &config)?;
            desk.send(NewMessage {
                in_reply_to: command.in_reply_to,
                key: command.key,
                ..NewMessage::plain((&sender).into(), to, command.body)
            })
        },
        move |outcome| reply.send(outcome),
    );
}
