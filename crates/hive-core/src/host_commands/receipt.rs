//! `receipt`: what became of any message.

use std::sync::Arc;

use hive_wire::{ErrorCode, WireError, agent::Receipt, host::LookUpReceipt};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: LookUpReceipt) -> Result<Receipt, WireError> {
    let id = command.message_id;
    host.read(move |readers| readers.receipt(id))
        .await?
        .ok_or_else(|| {
            WireError::new(ErrorCode::NotFound, format!("there is no message {id}"))
                .hint("`hive-c0re history` lists messages; settled ones go after their retention")
        })
}
