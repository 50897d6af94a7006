//! `restart`: stops an agent and starts it again (C1).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AgentRow, Restart},
};

use super::Host;
use crate::supervisor::Wish;

pub(crate) async fn run(host: Arc<Host>, command: Restart) -> Result<AgentRow, WireError> {
    host.wish(&command.name, Wish::Restart).await
}
