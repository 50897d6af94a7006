//! `info`: what daemon this is and how it does.

use std::sync::Arc;

use hive_wire::{
    Timestamp, WireError,
    host::{HiveInfo, Info},
};

use super::Host;
use crate::budgets;

pub(crate) async fn run(host: Arc<Host>, Info {}: Info) -> Result<HiveInfo, WireError> {
    let counts = host.read(hive_store::Readers::counts).await?;
    let found = host.broker.run(|desk| {
        let paused = desk.pauses.of_hive().map(|pause| pause.reason.clone());
        Ok((desk.roster.len(), paused))
    });
    let (agents, paused) = found.await?;
    let config = Arc::clone(&host.config);
    let spent = host.read(move |readers| {
        let now = Timestamp::now();
        let raises = readers.budget_day("", now)?.raises;
        Ok(budgets::of_hive(&config, &readers.spend(1, now)?, raises))
    });
    let spent_today = Some(spent.await?);
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
        paused,
        spent_today,
    })
}
