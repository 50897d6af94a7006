//! What the engine suite found, as it is written to disk.

use serde::Serialize;

use super::{contender::Contender, crowd::Crowd, long_session::LongSession, measure::Run};
use crate::{
    host::Host,
    stats::{median, median_ratio},
    targets::{Bound, Target, target},
};

#[derive(Debug, Serialize)]
pub(super) struct EngineResults {
    pub(super) schema: u32,
    pub(super) suite: &'static str,
    pub(super) host: Host,
    pub(super) settings: Settings,
    pub(super) costs: Vec<Cost>,
    pub(super) long_session: LongSession,
    pub(super) crowd: Crowd,
    pub(super) targets: Vec<Target>,
    /// What was left out, and why.
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) quick: bool,
    pub(super) rounds: usize,
}

/// What one engine costs; a figure per round.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    pub(super) engine: &'static str,
    pub(super) installed_mb: f64,
    /// `--version`, in milliseconds.
    pub(super) starts: Vec<f64>,
    pub(super) turns: Vec<f64>,
    pub(super) cpu: Vec<f64>,
    pub(super) peak_mb: Vec<f64>,
}

impl Cost {
    pub(super) fn of(contender: &Contender) -> Self {
        Self {
            engine: contender.name(),
            installed_mb: contender.installed_bytes() as f64 / 1e6,
            starts: Vec::new(),
            turns: Vec::new(),
            cpu: Vec::new(),
            peak_mb: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, start: Run, turn: Run) {
        self.starts.push(start.wall.as_secs_f64() * 1e3);
        self.turns.push(turn.wall.as_secs_f64() * 1e3);
        self.cpu.push(turn.cpu.as_secs_f64() * 1e3);
        self.peak_mb.push(turn.peak_bytes as f64 / 1e6);
    }
}

impl EngineResults {
    pub(super) fn cost(&self, engine: &str) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.engine == engine)
    }

    /// Every target, against what the run found.
    pub(super) fn judge(&self) -> Vec<Target> {
        let ratio = |engine: &str, figure: fn(&Cost) -> &[f64]| {
            let (ours, theirs) = (self.cost("hive-engine")?, self.cost(engine)?);
            median_ratio(figure(theirs), figure(ours))
        };
        let wall = |engine| ratio(engine, |cost| &cost.turns);
        let memory = |engine| ratio(engine, |cost| &cost.peak_mb);
        vec![
            target(
                "cold turn: × claude's wall time",
                Bound::AtLeast(20.0),
                wall("claude"),
            ),
            target(
                "cold turn: × claude's memory",
                Bound::AtLeast(15.0),
                memory("claude"),
            ),
            target(
                "cold turn: × codex's wall time",
                Bound::AtLeast(8.0),
                wall("codex"),
            ),
            target(
                format!(
                    "turn on a session of {:.0} MB: × an empty one",
                    self.long_session.megabytes
                ),
                Bound::AtMost(2.0),
                Some(self.long_session.ratio),
            ),
        ]
    }
}

/// The figure in the middle.
pub(super) fn middle(values: &[f64]) -> f64 {
    median(values.iter().copied())
}
