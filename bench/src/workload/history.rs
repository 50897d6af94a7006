//! Whether a long history slows the present: the same cycles on a hive with nothing in its store
//! and on one with millions of old acked messages, in turns.

mod prefill;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::cycle::{self, Load};
use crate::{
    peer::hive::Hive,
    site::Site,
    stats::{median, median_ratio},
};

#[derive(Debug, Clone, Serialize)]
pub(crate) struct History {
    pub(crate) messages: u64,
    pub(crate) empty_cycles_per_s: f64,
    pub(crate) full_cycles_per_s: f64,
    /// How many times as long a cycle takes on the full store.
    pub(crate) slowdown: f64,
    /// From the start of the daemon on the full store until it answers.
    pub(crate) start_ms: f64,
    pub(crate) database_mb: f64,
}

/// Where the two hives live and how long is measured.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a Path,
    pub(crate) empty: &'a Site,
    pub(crate) full: &'a Site,
    pub(crate) messages: u64,
    pub(crate) load: Load,
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
}

pub(crate) async fn run(plan: Plan<'_>) -> Result<History> {
    let clients = plan.load.clients;
    // The daemon makes its own schema and agents; the rows are added while it is down.
    drop(Hive::with_clients(plan.program, plan.full, clients).await?);
    let database = Hive::database(plan.full);
    prefill::prefill(&database, plan.messages, clients).context("cannot fill the store")?;
    let database_mb = database.metadata()?.len() as f64 / 1e6;

    let start = Instant::now();
    let full = Hive::start(plan.program, plan.full).await?;
    let start_ms = start.elapsed().as_secs_f64() * 1e3;
    let empty = Hive::with_clients(plan.program, plan.empty, clients).await?;

    let (mut on_empty, mut on_full) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let mut order = [(&empty, &mut on_empty), (&full, &mut on_full)];
        order.rotate_left(round % 2);
        for (hive, rates) in order {
            rates.push(cycle::run(hive, plan.load, plan.time).await?.cycles_per_s);
        }
    }
    Ok(History {
        messages: plan.messages,
        slowdown: median_ratio(&on_empty, &on_full).context("no cycle on the full store")?,
        empty_cycles_per_s: median(on_empty),
        full_cycles_per_s: median(on_full),
        start_ms,
        database_mb,
    })
}
