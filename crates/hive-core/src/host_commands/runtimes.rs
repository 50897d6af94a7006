//! `runtimes`: which runtimes work on this machine, and why the others do not.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{RuntimeStates, TryRuntimes},
};

use super::Host;

pub(super) async fn run(
    host: Arc<Host>,
    TryRuntimes {}: TryRuntimes,
) -> Result<RuntimeStates, WireError> {
    Ok(host.supervisor.try_runtimes().await)
}
