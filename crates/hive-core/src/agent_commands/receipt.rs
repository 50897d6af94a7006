//! `receipt`: what became of a message that the caller sent or received.

use hive_store::{Mail, Refusal};
use hive_wire::agent::{GetReceipt, Receipt};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: GetReceipt, reply: Reply<Receipt>) {
    let name = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            desk.store(|tx| {
                let id = command.message_id;
                let receipt = if id.is_transient() {
                    tx.transient_receipt(&name, id)
                } else {
                    tx.receipt(id)?
                };
                // Others' messages do not exist for the caller.
                receipt
                    .filter(|receipt| {
                        [receipt.from.as_str(), receipt.to.as_str()].contains(&name.as_str())
                    })
                    .ok_or(Refusal::NotFound {
                        what: "message",
                        id: id.to_string(),
                    })
            })
        },
        move |outcome| reply.send(outcome),
    );
}
