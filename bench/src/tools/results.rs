//! What the tools suite found, as it is written to disk.

use serde::Serialize;

use super::{attack::Attack, waiting::Waiting};
use crate::{
    host::Host,
    stats::{Percentiles, median_ratio},
    targets::{Bound, Target, target},
};

#[derive(Debug, Serialize)]
pub(super) struct ToolsResults {
    pub(super) schema: u32,
    pub(super) suite: &'static str,
    pub(super) host: Host,
    pub(super) settings: Settings,
    pub(super) calls: Vec<Calls>,
    pub(super) waiting: Waiting,
    pub(super) attack: Attack,
    pub(super) targets: Vec<Target>,
}

#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) quick: bool,
    pub(super) rounds: usize,
}

/// Calls of one kind: their median over the rounds, and the median of each round.
#[derive(Debug, Serialize)]
pub(super) struct Calls {
    pub(super) what: &'static str,
    #[serde(flatten)]
    pub(super) latency: Percentiles,
    rounds_p50_us: Vec<f64>,
}

impl Calls {
    pub(super) fn of(what: &'static str, rounds: &[Percentiles]) -> Self {
        Self {
            what,
            latency: Percentiles::median(rounds),
            rounds_p50_us: rounds.iter().map(|round| round.p50_us).collect(),
        }
    }
}

impl ToolsResults {
    /// The median of each round of this kind.
    fn rounds(&self, what: &str) -> Vec<f64> {
        let calls = self.calls.iter().find(|calls| calls.what == what);
        calls.map_or(Vec::new(), |calls| calls.rounds_p50_us.clone())
    }

    /// Every target, against what the run found.
    pub(super) fn judge(&self) -> Vec<Target> {
        let sum = |kinds: &[&str]| {
            let kinds: Vec<_> = kinds.iter().map(|kind| self.rounds(kind)).collect();
            let rounds = kinds.first().map_or(0, Vec::len);
            let round = |n: usize| kinds.iter().map(|kind| kind[n]).sum::<f64>();
            (0..rounds).map(round).collect::<Vec<_>>()
        };
        let free = sum(&["bare MCP echo", "socket ping-pong"]);
        // A commit costs what it costs: the bound is for what the hive adds to it.
        let write = self.rounds("hive, a write");
        let commits = self.rounds("one commit");
        let without: Vec<f64> = write.iter().zip(&commits).map(|(w, c)| w - c).collect();
        // One tick of the clock that CPU time is counted in.
        let tick = 1.0 / self.waiting.seconds;
        vec![
            target(
                "a read: × bare MCP echo and a ping-pong",
                Bound::AtMost(1.5),
                median_ratio(&self.rounds("hive, a read"), &free),
            ),
            target(
                "a write without one commit: × bare MCP echo and a ping-pong",
                Bound::AtMost(1.5),
                median_ratio(&without, &free),
            ),
            target(
                "fifty agents' reminders and schedules: CPU %",
                Bound::AtMost(tick),
                Some(self.waiting.cpu_percent),
            ),
            target(
                "p99 of an agent's send beside 10,000 idle connections: × quiet",
                Bound::AtMost(3.0),
                Some(self.attack.crowded_ratio),
            ),
            target(
                "p99 of another agent's send under attack: × quiet",
                Bound::AtMost(3.0),
                Some(self.attack.ratio),
            ),
        ]
    }
}
