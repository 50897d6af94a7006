//! `kill`: stops an agent and leaves it stopped (C18).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AgentRow, Kill},
};

use super::Host;
use crate::{approvals::Outcome, supervisor::Wish};

pub(crate) async fn run(host: Arc<Host>, command: Kill) -> Result<AgentRow, WireError> {
    let row = host.wish(&command.name, Wish::Stop).await?;
    host.tell_root(&command.name, Outcome::Killed).await;
    Ok(row)
}
