//! `info`: what daemon this is and how it does.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{HiveInfo, Info},
};

use super::Host;

pub(crate) async fn run(host: Arc<Host>, Info {}: Info) -> Result<HiveInfo, WireError> {
    let counts = host.read(hive_store::Readers::counts).await?;
    let agents = host.broker.run(|desk| Ok(desk.roster.len())).await?;
    Ok(HiveInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: host.started_at,
        hive: host.config.hive.name.clone(),
        swarm: host.config.hive.swarm.clone(),
        root: host.paths.root.display().to_string(),
        dashboard: host.dashboard.clone(),
        sqlite: rusqlite::version().to_owned(),
        agents: u32::try_from(agents).unwrap_or(u32::MAX),
        undelivered: counts.undelivered,
        dead: counts.dead,
        defaults: host.supervisor.defaults(),
    })
}
