//! `send`: stores a message for a peer, the operator or the parent (M2).

use std::sync::Arc;

use hive_store::NewMessage;
use hive_wire::agent::{Send, Sent};

use super::{Caller, check_body};
use crate::{permissions::Grants, server::Reply};

pub(super) fn run(caller: &Caller, command: Send, grants: Arc<Grants>, reply: Reply<Sent>) {
    if let Err(error) = check_body("body", &command.body) {
        return reply.refuse(error);
    }
    let sender = caller.name.clone();
    let config = caller.approvals.configs.get(&sender);
    caller.broker.submit(
        move |desk| {
            let to = desk
                .roster
                .route_from(&sender, &grants, &config, &command.to)?;
            desk.send(NewMessage {
                in_reply_to: command.in_reply_to,
                key: command.key,
                ..NewMessage::plain((&sender).into(), to, command.body)
            })
        },
        move |outcome| reply.send(outcome),
    );
}
