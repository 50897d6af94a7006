//! `rebuild`: makes everything of an agent anew, then stops and starts it (C7).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{AgentRow, AgentState, Rebuild},
};

use super::Host;
use crate::{approvals::Outcome, supervisor::Wish};

pub(crate) async fn run(host: Arc<Host>, command: Rebuild) -> Result<AgentRow, WireError> {
    let name = command.name;
    let rebuilt = host.wish(&name, Wish::Rebuild).await;
    let result = match &rebuilt {
        Ok(row) if row.state == AgentState::Failed => Err(row.note.clone()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    host.tell_root(&name, Outcome::Rebuilt(result)).await;
    rebuilt
}
