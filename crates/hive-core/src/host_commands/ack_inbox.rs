//! `ack_inbox`: messages of the operator's inbox are dealt with.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AckInbox, InboxAcked},
};
use serde_json::json;

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: AckInbox) -> Result<InboxAcked, WireError> {
    let acked = host
        .broker
        .run(move |desk| {
            let acked = desk.store(|tx| tx.ack_operator_mail(&command.ids))?;
            // Every page of the operator's closes what one of them has dealt with.
            desk.report_operator("messages_acked", &json!({"message_ids": command.ids}));
            Ok(acked)
        })
        .await?;
    Ok(InboxAcked { acked })
}
