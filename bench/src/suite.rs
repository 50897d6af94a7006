//! The queue suite: starts the peers, runs each of them once per round in a rotating order, then
//! the measurements that need servers of their own.
//!
//! A peer that is missing or fails becomes a note in the results and the rest goes on.

#![expect(clippy::print_stderr, reason = "progress, beside the report on stdout")]

mod field;

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use field::{Running, in_turn, within};

use crate::{
    host::Host,
    options::Options,
    peer::{
        Kind,
        floor::{self, Floor},
        postgres::Postgres,
        redis::Redis,
    },
    process::on_path,
    results::{CycleResult, FloorResult, PeerVersion, Results, Settings, Wake, WakeResult, ratios},
    site::Site,
    targets,
    workload::{
        cycle::{Load, Sample},
        history::{self, History},
        idle::{self, Idle},
        syncs::Syncs,
        wake,
    },
};

const LOADS: [Load; 4] = [
    Load::new(1, 200),
    Load::new(64, 200),
    Load::new(1, 2048),
    Load::new(64, 2048),
];
/// The load of everything that is measured under load alone.
const BUSY: Load = LOADS[1];

pub(crate) async fn run(options: &Options) -> Result<Results> {
    let mut bench = Bench::new(options)?;
    let field = bench.start_peers(&options.peers).await;
    let mut series = Series::default();
    for round in 0..bench.rounds {
        eprintln!("round {} of {}", round + 1, bench.rounds);
        bench.round(round, &field, &mut series).await?;
    }
    drop(field);
    let (mut syncs, mut idle, mut history) = (Vec::new(), None, None);
    if options.peers.is_empty() {
        syncs = bench.count_syncs().await;
        idle = bench.idle(options.idle_time()).await;
        history = bench.history(options.history()).await;
    }

    let cycles: Vec<CycleResult> = series
        .cycles
        .iter()
        .map(|((load, kind), samples)| CycleResult::of(*kind, *load, samples))
        .collect();
    let mut results = Results {
        schema: 1,
        suite: "queue",
        settings: Settings {
            quick: options.quick,
            seconds: bench.time.as_secs_f64(),
            rounds: bench.rounds,
        },
        peers: bench.versions,
        floor: FloorResult::of(&series.floor, series.wakes.values().flatten()),
        ratios: ratios(&cycles),
        cycles,
        wakes: series
            .wakes
            .iter()
            .map(|(kind, rounds)| WakeResult::of(*kind, rounds))
            .collect(),
        syncs,
        idle,
        history,
        targets: Vec::new(),
        host: bench.host,
        notes: bench.notes,
    };
    results.targets = targets::judge(&results);
    Ok(results)
}

/// Everything one run shares. Its directory goes when it is dropped, after the servers.
struct Bench {
    dir: TempDir,
    host: Host,
    hive: PathBuf,
    time: Duration,
    rounds: usize,
    loads: Vec<Load>,
    wake_samples: u32,
    versions: Vec<PeerVersion>,
    notes: Vec<String>,
    /// Peers that failed and take no further part.
    given_up: Vec<Kind>,
}

/// What the rounds collected. A peer that was given up has fewer samples.
#[derive(Default)]
struct Series {
    /// Appending and overwriting.
    floor: Vec<(Floor, Floor)>,
    cycles: BTreeMap<(Load, Kind), Vec<Sample>>,
    wakes: BTreeMap<Kind, Vec<Wake>>,
}

impl Bench {
    fn new(options: &Options) -> Result<Self> {
        let base = options.dir()?;
        fs::create_dir_all(&base)?;
        let host = Host::of(&base)?;
        ensure!(
            !host.volatile(),
            "{} is on {}, where a sync reaches no disk: choose another with --dir",
            base.display(),
            host.filesystem
        );
        // Open to other accounts, because PostgreSQL does not run as root.
        let dir = tempfile::Builder::new()
            .prefix("bench-run-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(&base)
            .context("cannot create a directory for the run")?;
        Ok(Self {
            dir,
            host,
            hive: options.hive_bin()?,
            time: options.time()?,
            rounds: options.rounds(),
            loads: options.load.map_or(LOADS.to_vec(), |load| vec![load]),
            wake_samples: options.wake_samples(),
            versions: Vec::new(),
            notes: Vec::new(),
            given_up: Vec::new(),
        })
    }

    /// Starts the peers in `only`, or all of them.
    async fn start_peers(&mut self, only: &[Kind]) -> Vec<Running> {
        let mut field = Vec::new();
        for kind in [Kind::PingPong, Kind::Redis, Kind::Postgres, Kind::Hive] {
            if !only.is_empty() && !only.contains(&kind) {
                continue;
            }
            eprintln!("starting {kind}");
            let site = Site::new(self.dir.path(), &kind.to_string());
            match Running::start(kind, site, &self.hive, BUSY.clients).await {
                Ok(running) => {
                    field.push(running);
                    self.note_version(kind);
                }
                Err(error) => self.note(format!("{kind} left out: {error:#}")),
            }
        }
        field
    }

    /// The floor, then every configuration and the wake latency of every peer still in the run.
    async fn round(&mut self, round: usize, field: &[Running], series: &mut Series) -> Result<()> {
        let dir = self.dir.path().to_owned();
        series.floor.push((
            floor::serial(&dir, floor::Write::Append, self.time / 2)?,
            floor::serial(&dir, floor::Write::Overwrite, self.time / 2)?,
        ));
        for load in self.loads.clone() {
            for peer in in_turn(field, round) {
                let kind = peer.kind();
                if self.given_up.contains(&kind) {
                    continue;
                }
                match within(self.time, peer.cycle(load, self.time)).await {
                    Ok(sample) => series.cycles.entry((load, kind)).or_default().push(sample),
                    Err(error) => self.give_up(kind, &error),
                }
            }
        }
        for peer in in_turn(field, round) {
            let kind = peer.kind();
            if self.given_up.contains(&kind) {
                continue;
            }
            // Right before each peer: what the disk does now is what the peer is compared with.
            let idle = floor::idle(&dir, self.wake_samples, wake::PAUSE).await?;
            match within(self.time, peer.wake(self.wake_samples)).await {
                Ok(woken) => series
                    .wakes
                    .entry(kind)
                    .or_default()
                    .push(Wake { idle, woken }),
                Err(error) => self.give_up(kind, &error),
            }
        }
        Ok(())
    }

    async fn count_syncs(&mut self) -> Vec<Syncs> {
        if on_path("strace").is_none() {
            self.note("syncs not counted: strace is not installed (apt-get install strace)");
            return Vec::new();
        }
        let mut counted = Vec::new();
        for kind in [Kind::Hive, Kind::Redis, Kind::Postgres] {
            if !self.versions.iter().any(|version| version.peer == kind) {
                continue;
            }
            eprintln!("counting the syncs of {kind}");
            let site = Site::traced(self.dir.path(), &format!("{kind}-traced"));
            let result = match Running::start(kind, site, &self.hive, BUSY.clients).await {
                Ok(running) => within(self.time, running.syncs(BUSY, self.time)).await,
                Err(error) => Err(error),
            };
            match result {
                Ok(syncs) => counted.push(syncs),
                Err(error) => self.note(format!("syncs of {kind} not counted: {error:#}")),
            }
        }
        counted
    }

    async fn idle(&mut self, time: Duration) -> Option<Idle> {
        self.of_the_hive("idle", async |bench| {
            let site = Site::new(bench.dir.path(), "idle")?;
            idle::run(&bench.hive, &site, time).await
        })
        .await
    }

    async fn history(&mut self, messages: u64) -> Option<History> {
        self.of_the_hive("history", async |bench| {
            history::run(history::Plan {
                program: &bench.hive,
                empty: &Site::new(bench.dir.path(), "empty")?,
                full: &Site::new(bench.dir.path(), "full")?,
                messages,
                load: BUSY,
                rounds: bench.rounds,
                time: bench.time,
            })
            .await
        })
        .await
    }

    /// Runs a measurement of the hive alone, if the hive is in the run at all.
    async fn of_the_hive<T>(
        &mut self,
        what: &str,
        measure: impl AsyncFnOnce(&Self) -> Result<T>,
    ) -> Option<T> {
        if !self
            .versions
            .iter()
            .any(|version| version.peer == Kind::Hive)
        {
            return None;
        }
        eprintln!("measuring {what}");
        match measure(self).await {
            Ok(result) => Some(result),
            Err(error) => {
                self.note(format!("{what} not measured: {error:#}"));
                None
            }
        }
    }

    fn note_version(&mut self, peer: Kind) {
        let version = match peer {
            Kind::Redis => Redis::version(),
            Kind::Postgres => Postgres::version(),
            Kind::Hive | Kind::PingPong => Ok(env!("CARGO_PKG_VERSION").to_owned()),
        };
        let version = version.unwrap_or_else(|_| "unknown".to_owned());
        self.versions.push(PeerVersion { peer, version });
    }

    fn give_up(&mut self, peer: Kind, error: &anyhow::Error) {
        self.given_up.push(peer);
        self.note(format!("{peer} given up: {error:#}"));
    }

    /// Records what went wrong without the run's own paths, which mean nothing to a reader.
    fn note(&mut self, text: impl Into<String>) {
        let text = text
            .into()
            .replace(&*self.dir.path().to_string_lossy(), "DIR");
        let text = text.replace(&*self.hive.to_string_lossy(), "hive-c0re");
        eprintln!("note: {text}");
        self.notes.push(text);
    }
}
