//! How many syncs a peer needs per operation under load: the one figure that does not depend on the
//! machine's mood, and that shows how well commits group.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::cycle::{self, Load};
use crate::{
    peer::{Kind, Peer},
    site::Site,
};

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Syncs {
    pub(crate) peer: Kind,
    pub(crate) clients: usize,
    pub(crate) per_cycle: f64,
    /// A cycle has two durable operations, the send and the ack.
    pub(crate) per_operation: f64,
}

/// Counts on a peer that was started on a traced site.
pub(crate) async fn run<P: Peer>(
    kind: Kind,
    peer: &P,
    site: &Site,
    load: Load,
    time: Duration,
) -> Result<Syncs> {
    let before = site.syncs()?;
    let sample = cycle::run(peer, load, time).await?;
    let syncs = site.syncs()? - before;
    let per_cycle = syncs as f64 / sample.cycles_in_all as f64;
    Ok(Syncs {
        peer: kind,
        clients: load.clients,
        per_cycle,
        per_operation: per_cycle / 2.0,
    })
}
