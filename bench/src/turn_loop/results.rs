//! What the loop suite found, as it is written to disk.

use std::time::Duration;

use serde::Serialize;

use super::stage::{Measured, Way};
use crate::{
    host::Host,
    stats::{Latencies, Percentiles, median},
    targets::{Bound, Target, target},
};

#[derive(Debug, Serialize)]
pub(super) struct LoopResults {
    pub(super) schema: u32,
    pub(super) suite: &'static str,
    pub(super) host: Host,
    pub(super) settings: Settings,
    pub(super) turns: Vec<TurnCost>,
    pub(super) bursts: Vec<Burst>,
    pub(super) idle: Idle,
    pub(super) targets: Vec<Target>,
    /// What was left out, and why.
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) quick: bool,
}

/// What turns cost with one engine.
#[derive(Debug, Serialize)]
pub(super) struct TurnCost {
    pub(super) engine: &'static str,
    pub(super) way: Way,
    pub(super) turns: usize,
    /// From just before the send until the prompt was on its way to an engine process.
    pub(super) send_to_spawn: Percentiles,
    /// The same until the engine's own first moment, where that is known.
    pub(super) send_to_engine: Option<Percentiles>,
    /// The turn's wall time without the engine's: the loop's own cost.
    pub(super) own: Percentiles,
    /// The median turn, from the message's arrival until the host has its end.
    pub(super) turn_ms: f64,
    /// The median time of the engine in it, its guard included.
    pub(super) engine_ms: f64,
    /// The median time of the same engine without a harness.
    pub(super) bare_ms: Option<f64>,
}

impl TurnCost {
    pub(super) fn of(
        engine: &'static str,
        way: Way,
        turns: &[Measured],
        bare: &[Duration],
    ) -> Self {
        let (mut spawn, mut own) = (Latencies::default(), Latencies::default());
        let (mut began, mut is_known) = (Latencies::default(), false);
        for turn in turns {
            let micros = turn.timing.total_us.saturating_sub(turn.timing.engine_us);
            own.push(Duration::from_micros(micros));
            spawn.push(turn.send_to_spawn);
            if let Some(time) = turn.send_to_engine {
                began.push(time);
                is_known = true;
            }
        }
        let millis = |micros: u64| Duration::from_micros(micros).as_secs_f64() * 1e3;
        let bare_ms = median(bare.iter().map(|time| time.as_secs_f64() * 1e3));
        Self {
            engine,
            way,
            turns: turns.len(),
            send_to_spawn: spawn.summary(),
            send_to_engine: is_known.then(|| began.summary()),
            own: own.summary(),
            turn_ms: median(turns.iter().map(|turn| millis(turn.timing.total_us))),
            engine_ms: median(turns.iter().map(|turn| millis(turn.timing.engine_us))),
            bare_ms: (!bare.is_empty()).then_some(bare_ms),
        }
    }
}

/// The same burst of messages both ways.
#[derive(Debug, Serialize)]
pub(super) struct Burst {
    pub(super) engine: &'static str,
    pub(super) messages: usize,
    pub(super) process_s: f64,
    pub(super) warm_s: f64,
    pub(super) ratio: f64,
}

/// What a harness uses while nothing happens.
#[derive(Debug, Serialize)]
pub(super) struct Idle {
    pub(super) seconds: f64,
    pub(super) cpu_percent: f64,
    pub(super) rss_mb: f64,
    pub(super) open_files: usize,
}

impl LoopResults {
    /// Every target, against what the run found.
    pub(super) fn judge(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for engine in ["fake engine", "claude"] {
            let mut costs = self.turns.iter();
            let cost = costs.find(|cost| cost.engine == engine && cost.way == Way::Process);
            targets.push(target(
                format!("turn without the engine, {engine}: median ms"),
                Bound::AtMost(5.0),
                cost.map(|cost| cost.own.p50_us / 1e3),
            ));
        }
        // The fake engine always takes the same time, so that even its guard can be counted in.
        let cold = |cost: &&TurnCost| cost.engine == "fake engine" && cost.way == Way::Process;
        let cost = self.turns.iter().find(cold);
        targets.push(target(
            "turn without the bare fake engine: median ms",
            Bound::AtMost(5.0),
            cost.and_then(|cost| Some(cost.turn_ms - cost.bare_ms?)),
        ));
        let burst = self.bursts.iter().find(|burst| burst.engine == "claude");
        targets.push(target(
            "burst of 20, warm claude: × one process per turn",
            Bound::AtMost(0.25),
            burst.map(|burst| burst.ratio),
        ));
        let rss = Some(self.idle.rss_mb);
        targets.push(target("idle harness: RSS MB", Bound::AtMost(12.0), rss));
        // One tick of the clock that CPU time is counted in.
        let tick = 1.0 / self.idle.seconds;
        let cpu = Some(self.idle.cpu_percent);
        targets.push(target("idle harness: CPU %", Bound::AtMost(tick), cpu));
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_loop::stage::Timing;

    #[test]
    fn the_loops_own_cost_is_the_turn_without_its_engine() {
        let measured = |total_us, engine_us| Measured {
            timing: Timing {
                total_us,
                engine_us,
                spawned_at_us: 0,
            },
            send_to_spawn: Duration::from_micros(700),
            send_to_engine: None,
        };
        let turns = [
            measured(9_000, 5_000),
            measured(12_000, 9_000),
            measured(8_000, 2_000),
        ];
        let bare = [Duration::from_millis(3)];
        let cost = TurnCost::of("fake engine", Way::Process, &turns, &bare);
        assert!((cost.own.p50_us - 4_000.0).abs() < 1e-6, "{cost:?}");
        assert!((cost.own.p99_us - 6_000.0).abs() < 1e-6, "{cost:?}");
        assert!((cost.turn_ms - 9.0).abs() < 1e-6 && (cost.engine_ms - 5.0).abs() < 1e-6);
        assert_eq!(cost.bare_ms, Some(3.0));
        let warm = TurnCost::of("fake engine", Way::Warm, &turns, &[]);
        assert_eq!(warm.bare_ms, None);
    }
}
