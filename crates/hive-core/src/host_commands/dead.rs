//! `dead`: messages that were given up on, in pages.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{Dead, DeadLetters},
};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: Dead) -> Result<DeadLetters, WireError> {
    let page = host
        .read(move |readers| readers.dead_letters(command.after))
        .await?;
    let last = page.rows.last().map(|last| last.receipt.message_id);
    Ok(DeadLetters {
        next: last.filter(|_| page.more),
        messages: page.rows,
    })
}
