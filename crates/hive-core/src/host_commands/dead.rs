//! `dead`: messages that were given up on, in pages.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{Dead, DeadLetters},
};

use super::{Host, history::how_many_fit};

pub(super) async fn run(host: Arc<Host>, command: Dead) -> Result<DeadLetters, WireError> {
    let mut messages = host
        .read(move |readers| readers.dead_letters(command.after))
        .await?;
    let has_more = how_many_fit(&messages) < messages.len();
    messages.truncate(how_many_fit(&messages));
    let last = messages.last().map(|last| last.receipt.message_id);
    Ok(DeadLetters {
        messages,
        next: last.filter(|_| has_more),
    })
}
