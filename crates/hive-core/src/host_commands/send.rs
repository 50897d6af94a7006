//! `send`: a message from the operator.

use std::sync::Arc;

use hive_store::NewMessage;
use hive_wire::{SenderLabel, WireError, agent::Sent, host::SendAsOperator};

use super::Host;
use crate::agent_commands::check_body;

pub(crate) async fn run(host: Arc<Host>, command: SendAsOperator) -> Result<Sent, WireError> {
    check_body("body", &command.body)?;
    host.broker
        .run(move |desk| {
            let to = desk.roster.route(None, &command.to)?;
            desk.send(NewMessage {
                in_reply_to: command.in_reply_to,
                key: command.key,
                ..NewMessage::plain(SenderLabel::operator(), to, command.body)
            })
        })
        .await
}
