//! `ack_inbox`: messages of the operator's inbox are dealt with.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AckInbox, InboxAcked},
};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: AckInbox) -> Result<InboxAcked, WireError> {
    let acked = host
        .broker
        .run(move |desk| desk.store(|tx| tx.ack_operator_mail(&command.ids)))
        .await?;
    Ok(InboxAcked { acked })
}
