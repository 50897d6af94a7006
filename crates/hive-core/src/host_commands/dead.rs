//! `dead`: messages that were given up on.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{Dead, DeadLetters},
};

use super::{Host, history::how_many_fit};

pub(super) async fn run(host: Arc<Host>, Dead {}: Dead) -> Result<DeadLetters, WireError> {
    let mut messages = host.read(hive_store::Readers::dead_letters).await?;
    messages.truncate(how_many_fit(&messages));
    Ok(DeadLetters { messages })
}
