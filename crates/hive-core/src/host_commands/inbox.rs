//! `inbox`: the operator's mail, looked at without being consumed.

use std::sync::Arc;

use hive_wire::{WireError, agent::Messages, host::Inbox};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: Inbox) -> Result<Messages, WireError> {
    let messages = host
        .read(move |readers| readers.operator_inbox(command.after))
        .await?;
    Ok(Messages { messages })
}
