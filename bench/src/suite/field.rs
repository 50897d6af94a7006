//! The peers that take part, whatever their kind: the one place that tells them apart.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};

use crate::{
    peer::{Kind, Peer as _, hive::Hive, pingpong::PingPong, postgres::Postgres, redis::Redis},
    process::at_rest,
    site::Site,
    stats::Percentiles,
    workload::{
        cycle::{self, Load, Sample},
        syncs::{self, Syncs},
        wake,
    },
};

/// How much longer than its measured time a measurement may take before its peer is given up.
const GRACE: Duration = Duration::from_secs(60);

/// A started peer of any kind, with the place it lives in.
pub(super) enum Running {
    PingPong(PingPong, Site),
    Redis(Redis, Site),
    Postgres(Postgres, Site),
    Hive(Hive, Site),
}

impl Running {
    /// Starts a peer; the hive gets the agents of `clients` pairs.
    pub(super) async fn start(
        kind: Kind,
        site: Result<Site>,
        hive: &Path,
        clients: usize,
    ) -> Result<Self> {
        let site = site?;
        Ok(match kind {
            Kind::PingPong => Self::PingPong(PingPong::start(&site).await?, site),
            Kind::Redis => Self::Redis(Redis::start(&site).await?, site),
            Kind::Postgres => Self::Postgres(Postgres::start(&site).await?, site),
            Kind::Hive => Self::Hive(Hive::with_clients(hive, &site, clients).await?, site),
        })
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::PingPong(..) => Kind::PingPong,
            Self::Redis(..) => Kind::Redis,
            Self::Postgres(..) => Kind::Postgres,
            Self::Hive(..) => Kind::Hive,
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Self::PingPong(peer, _) => peer.pid(),
            Self::Redis(peer, _) => peer.pid(),
            Self::Postgres(peer, _) => peer.pid(),
            Self::Hive(peer, _) => peer.pid(),
        }
    }

    /// Measures cycles, and leaves the machine at rest.
    pub(super) async fn cycle(&self, load: Load, time: Duration) -> Result<Sample> {
        let sample = match self {
            Self::PingPong(peer, _) => cycle::run(peer, load, time).await,
            Self::Redis(peer, _) => cycle::run(peer, load, time).await,
            Self::Postgres(peer, _) => cycle::run(peer, load, time).await,
            Self::Hive(peer, _) => cycle::run(peer, load, time).await,
        };
        at_rest(self.pid()).await;
        sample
    }

    pub(super) async fn wake(&self, samples: u32) -> Result<Percentiles> {
        match self {
            Self::PingPong(peer, _) => wake::run(peer, samples).await,
            Self::Redis(peer, _) => wake::run(peer, samples).await,
            Self::Postgres(peer, _) => wake::run(peer, samples).await,
            Self::Hive(peer, _) => wake::run(peer, samples).await,
        }
    }

    pub(super) async fn syncs(&self, load: Load, time: Duration) -> Result<Syncs> {
        let kind = self.kind();
        match self {
            Self::PingPong(peer, site) => syncs::run(kind, peer, site, load, time).await,
            Self::Redis(peer, site) => syncs::run(kind, peer, site, load, time).await,
            Self::Postgres(peer, site) => syncs::run(kind, peer, site, load, time).await,
            Self::Hive(peer, site) => syncs::run(kind, peer, site, load, time).await,
        }
    }
}

/// The peers, another one first each round: whoever runs first finds a rested disk.
pub(super) fn in_turn(field: &[Running], round: usize) -> impl Iterator<Item = &Running> {
    (0..field.len()).map(move |index| &field[(index + round) % field.len()])
}

/// A measurement that ends in time or fails.
pub(super) async fn within<T>(
    time: Duration,
    measurement: impl Future<Output = Result<T>>,
) -> Result<T> {
    let limit = time + GRACE;
    tokio::time::timeout(limit, measurement)
        .await
        .with_context(|| format!("no result within {} s", limit.as_secs()))?
}
