//! `start`: starts an agent that is stopped or failed (C1).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AgentRow, Start},
};

use super::Host;
use crate::supervisor::Wish;

pub(crate) async fn run(host: Arc<Host>, command: Start) -> Result<AgentRow, WireError> {
    host.wish(&command.name, Wish::Start).await
}
