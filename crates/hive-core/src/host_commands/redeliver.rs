//! `redeliver`: a dead letter goes back into its inbox (C18).

use std::sync::Arc;

use hive_store::mail::Verdict;
use hive_wire::{
    WireError,
    host::{Redeliver, Settled},
};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: Redeliver) -> Result<Settled, WireError> {
    let id = command.message_id;
    let state = host
        .broker
        .run(move |desk| desk.settle(id, Verdict::Redeliver))
        .await?;
    Ok(Settled { state })
}
