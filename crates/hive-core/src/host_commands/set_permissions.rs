//! `set_permissions`: changes what an agent may do (C14). On disk first, then in force, then
//! answered: whatever the agent asks after the answer is judged by it.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{PermissionRow, SetPermissions},
};
use serde_json::json;

use super::{Host, permissions};

pub(crate) async fn run(
    host: Arc<Host>,
    command: SetPermissions,
) -> Result<PermissionRow, WireError> {
    // One change after the other: each begins from what the one before left.
    let _alone = host.lifecycle.lock().await;
    let name = command.name.clone();
    let before = host.gate.grants(&name);
    let grants = host
        .broker
        .run(move |desk| {
            let name = desk.roster.find(command.name.as_str())?.name.clone();
            let grants = before.changed(&command, desk.now())?;
            desk.store(|tx| tx.grant(&name, &grants.to_store()))?;
            desk.report_agent(&name, "permissions_set", &json!(grants.shown()));
            Ok(grants)
        })
        .await?;
    host.gate.set(&name, grants.clone());
    host.harnesses.set_tool_groups(&name, grants.groups());
    Ok(permissions::row(name, &grants))
}
