//! `permissions`: what agents may do (C14).

use std::sync::Arc;

use hive_wire::{
    AgentName, WireError,
    host::{PermissionList, PermissionRow, ShowPermissions},
};

use super::Host;
use crate::permissions::Grants;

pub(crate) async fn run(
    host: Arc<Host>,
    command: ShowPermissions,
) -> Result<PermissionList, WireError> {
    let names = host
        .broker
        .run(move |desk| match command.name {
            Some(name) => Ok(vec![desk.roster.find(name.as_str())?.name.clone()]),
            None => Ok(desk.roster.iter().map(|agent| agent.name.clone()).collect()),
        })
        .await?;
    let rows = names.into_iter().map(|name| {
        let grants = host.gate.grants(&name);
        row(name, &grants)
    });
    Ok(PermissionList {
        agents: rows.collect(),
    })
}

/// What one agent may do, as it is shown.
pub(super) fn row(name: AgentName, grants: &Grants) -> PermissionRow {
    PermissionRow {
        name,
        granted: grants.shown(),
        changed_at: grants.changed_at(),
    }
}
