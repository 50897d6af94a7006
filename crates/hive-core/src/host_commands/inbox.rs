//! `inbox`: the operator's mail, looked at without being consumed, as much as fits into a line.

use std::sync::Arc;

use hive_wire::{WireError, agent::Messages, host::Inbox};

use super::Host;

pub(crate) async fn run(host: Arc<Host>, command: Inbox) -> Result<Messages, WireError> {
    let page = host
        .read(move |readers| readers.operator_inbox(command.after))
        .await?;
    Ok(Messages {
        messages: page.rows,
    })
}
