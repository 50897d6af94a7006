//! `discard`: a dead letter goes away; its receipt stays (C18).

use std::sync::Arc;

use hive_store::mail::Verdict;
use hive_wire::{
    WireError,
    host::{Discard, Settled},
};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: Discard) -> Result<Settled, WireError> {
    let id = command.message_id;
    let state = host
        .broker
        .run(move |desk| desk.settle(id, Verdict::Discard))
        .await?;
    Ok(Settled { state })
}
