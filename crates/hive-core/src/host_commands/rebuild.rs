//! `rebuild`: makes everything of an agent anew, then stops and starts it (C7).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AgentRow, Rebuild},
};

use super::Host;
use crate::supervisor::Wish;

pub(crate) async fn run(host: Arc<Host>, command: Rebuild) -> Result<AgentRow, WireError> {
    host.wish(&command.name, Wish::Rebuild).await
}
