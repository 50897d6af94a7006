//! `status`: how the caller's inbox stands (T2).

use hive_store::Mail;
use hive_wire::agent::{InboxStatus, Status};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, Status {}: Status, reply: Reply<InboxStatus>) {
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| desk.store(|tx| tx.inbox(&agent.into())),
        move |outcome| reply.send(outcome),
    );
}
