//! What a hive costs while nothing happens: many agents, each with a receive parked.

use std::{path::Path, time::Duration};

use anyhow::Result;
use serde::Serialize;

use crate::{
    peer::{Peer as _, hive::Hive},
    process::Usage,
    site::Site,
};

pub(crate) const RECEIVERS: usize = 500;
/// For what parking itself set off to die down.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Idle {
    pub(crate) receivers: usize,
    pub(crate) seconds: f64,
    pub(crate) cpu_percent: f64,
    pub(crate) rss_mb: f64,
    pub(crate) open_files: usize,
}

pub(crate) async fn run(program: &Path, site: &Site, time: Duration) -> Result<Idle> {
    let hive = Hive::start(program, site).await?;
    let names: Vec<String> = (0..RECEIVERS).map(|number| format!("i{number}")).collect();
    hive.spawn_agents(names.clone())?;
    let mut parked = Vec::with_capacity(RECEIVERS);
    for name in &names {
        parked.push(hive.park(name).await?);
    }
    tokio::time::sleep(SETTLE).await;
    let before = Usage::of(hive.pid())?;
    tokio::time::sleep(time).await;
    let after = Usage::of(hive.pid())?;
    let seconds = time.as_secs_f64();
    Ok(Idle {
        receivers: parked.len(),
        seconds,
        cpu_percent: (after.cpu - before.cpu).as_secs_f64() / seconds * 100.0,
        rss_mb: after.rss_bytes as f64 / 1e6,
        open_files: after.open_files,
    })
}
