//! What a run found, as it is written to disk: medians over rounds, with every round's rate beside
//! them. Nothing here names the machine or a path on it.

use serde::Serialize;

use crate::{
    host::Host,
    peer::{Kind, floor::Floor},
    stats::{Percentiles, median, median_ratio},
    targets::Target,
    workload::{
        cycle::{Load, Sample},
        history::History,
        idle::Idle,
        syncs::Syncs,
    },
};

#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) schema: u32,
    pub(crate) suite: &'static str,
    pub(crate) host: Host,
    pub(crate) settings: Settings,
    pub(crate) peers: Vec<PeerVersion>,
    pub(crate) floor: Option<FloorResult>,
    pub(crate) cycles: Vec<CycleResult>,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) wakes: Vec<WakeResult>,
    pub(crate) syncs: Vec<Syncs>,
    pub(crate) idle: Option<Idle>,
    pub(crate) history: Option<History>,
    pub(crate) targets: Vec<Target>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    pub(crate) quick: bool,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct PeerVersion {
    pub(crate) peer: Kind,
    pub(crate) version: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct FloorResult {
    pub(crate) append: Floor,
    pub(crate) overwrite: Floor,
    /// One append on a disk that has nothing else to do.
    pub(crate) idle_append: Percentiles,
}

#[derive(Debug, Serialize)]
pub(crate) struct CycleResult {
    pub(crate) peer: Kind,
    #[serde(flatten)]
    pub(crate) load: Load,
    pub(crate) cycles_per_s: f64,
    pub(crate) send: Percentiles,
    /// What the server's process spent on one cycle, user and system.
    pub(crate) cpu_us: f64,
    pub(crate) rounds: Vec<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    #[serde(flatten)]
    pub(crate) load: Load,
    pub(crate) peer: Kind,
    /// The hive's cycle rate over the peer's, round by round, then the median.
    pub(crate) hive_over_peer: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct WakeResult {
    pub(crate) peer: Kind,
    #[serde(flatten)]
    pub(crate) latency: Percentiles,
    /// The median wake over the same round's idle append and fdatasync, then the median.
    pub(crate) fdatasyncs: f64,
}

impl CycleResult {
    pub(crate) fn of(peer: Kind, load: Load, samples: &[Sample]) -> Self {
        let rounds: Vec<f64> = samples.iter().map(|sample| sample.cycles_per_s).collect();
        let sends: Vec<Percentiles> = samples.iter().map(|sample| sample.send).collect();
        Self {
            peer,
            load,
            cycles_per_s: median(rounds.iter().copied()),
            send: Percentiles::median(&sends),
            cpu_us: median(samples.iter().map(|sample| sample.cpu_us)),
            rounds,
        }
    }
}

impl FloorResult {
    /// The medians of `(append, overwrite)` rounds and of the idle appends; none without a round.
    pub(crate) fn of<'a>(
        rounds: &[(Floor, Floor)],
        wakes: impl Iterator<Item = &'a Wake>,
    ) -> Option<Self> {
        let idle: Vec<Percentiles> = wakes.map(|wake| wake.idle).collect();
        (!rounds.is_empty()).then(|| Self {
            append: median_floor(rounds.iter().map(|round| round.0).collect()),
            overwrite: median_floor(rounds.iter().map(|round| round.1).collect()),
            idle_append: Percentiles::median(&idle),
        })
    }
}

/// One round of a peer's wake latency, and of the disk alone just before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub(crate) idle: Percentiles,
    pub(crate) woken: Percentiles,
}

impl WakeResult {
    pub(crate) fn of(peer: Kind, rounds: &[Wake]) -> Self {
        let latencies: Vec<Percentiles> = rounds.iter().map(|round| round.woken).collect();
        let woken: Vec<f64> = rounds.iter().map(|round| round.woken.p50_us).collect();
        let idle: Vec<f64> = rounds.iter().map(|round| round.idle.p50_us).collect();
        Self {
            peer,
            latency: Percentiles::median(&latencies),
            fdatasyncs: median_ratio(&woken, &idle).unwrap_or_default(),
        }
    }
}

fn median_floor(rounds: Vec<Floor>) -> Floor {
    let latencies: Vec<Percentiles> = rounds.iter().map(|round| round.latency).collect();
    Floor {
        syncs_per_s: median(rounds.iter().map(|round| round.syncs_per_s)),
        latency: Percentiles::median(&latencies),
    }
}

/// The hive against each durable peer, wherever both ran.
pub(crate) fn ratios(cycles: &[CycleResult]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for hive in cycles.iter().filter(|result| result.peer == Kind::Hive) {
        let same_load = cycles.iter().filter(|other| other.load == hive.load);
        for other in same_load.filter(|other| matches!(other.peer, Kind::Redis | Kind::Postgres)) {
            ratios.extend(
                median_ratio(&hive.rounds, &other.rounds).map(|hive_over_peer| Ratio {
                    load: hive.load,
                    peer: other.peer,
                    hive_over_peer,
                }),
            );
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(peer: Kind, clients: usize, rounds: &[f64]) -> CycleResult {
        let load = Load::new(clients, 200);
        let samples: Vec<Sample> = rounds
            .iter()
            .map(|&cycles_per_s| Sample {
                cycles_per_s,
                send: Percentiles::default(),
                cpu_us: 0.0,
                cycles_in_all: 0,
            })
            .collect();
        CycleResult::of(peer, load, &samples)
    }

    #[test]
    fn ratios_pair_the_hive_with_durable_peers_of_the_same_load() {
        let ratios = ratios(&[
            cycle(Kind::Hive, 64, &[30.0, 60.0]),
            cycle(Kind::Redis, 64, &[10.0, 20.0]),
            cycle(Kind::Redis, 1, &[1.0, 1.0]),
            cycle(Kind::PingPong, 64, &[9.0, 9.0]),
        ]);
        assert_eq!(ratios.len(), 1);
        assert_eq!(ratios[0].peer, Kind::Redis);
        assert!((ratios[0].hive_over_peer - 3.0).abs() < 1e-9);
    }
}
