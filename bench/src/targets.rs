//! What the hive aims for, and whether a run got there. A miss is reported and fails nothing.

use serde::Serialize;

use crate::{peer::Kind, results::Results, workload::cycle::Load};

#[derive(Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) want: String,
    /// None when the run could not measure it.
    pub(crate) got: Option<f64>,
    pub(crate) met: Option<bool>,
}

/// Which side of the bound is good.
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Every target, against what the run found so far.
pub(crate) fn judge(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    for (peer, clients, bound) in [
        (Kind::Redis, 64, 1.5),
        (Kind::Postgres, 64, 6.0),
        (Kind::Redis, 1, 1.2),
    ] {
        for body_bytes in [200, 2048] {
            let load = Load::new(clients, body_bytes);
            let name = format!("cycles at {clients} × {body_bytes} B: × {peer}");
            targets.push(target(
                name,
                Bound::AtLeast(bound),
                ratio(results, peer, load),
            ));
        }
    }
    let wake = results.wakes.iter().find(|wake| wake.peer == Kind::Hive);
    let wake = wake.map(|wake| wake.fdatasyncs);
    targets.push(target(
        "wake p50: × one idle fdatasync",
        Bound::AtMost(1.8),
        wake,
    ));
    let history = results.history.as_ref();
    let name = history.map_or("cycle on a full store: × empty".to_owned(), |history| {
        format!("cycle on {} old messages: × empty", history.messages)
    });
    let slowdown = history.map(|history| history.slowdown);
    targets.push(target(name, Bound::AtMost(1.3), slowdown));
    let idle = results.idle.as_ref();
    let cpu = idle.map(|idle| idle.cpu_percent);
    targets.push(target(
        "idle with 500 parked: CPU %",
        Bound::AtMost(0.1),
        cpu,
    ));
    let rss = idle.map(|idle| idle.rss_mb);
    targets.push(target(
        "idle with 500 parked: RSS MB",
        Bound::AtMost(60.0),
        rss,
    ));
    targets
}

fn ratio(results: &Results, peer: Kind, load: Load) -> Option<f64> {
    let mut ratios = results.ratios.iter();
    let ratio = ratios.find(|ratio| ratio.peer == peer && ratio.load == load)?;
    Some(ratio.hive_over_peer)
}

/// A target and what came of it; `got` is none when it was not measured.
pub(crate) fn target(name: impl Into<String>, bound: Bound, got: Option<f64>) -> Target {
    let (want, met) = match bound {
        Bound::AtLeast(bound) => (format!("≥ {bound}"), got.map(|got| got >= bound)),
        Bound::AtMost(bound) => (format!("≤ {bound}"), got.map(|got| got <= bound)),
    };
    Target {
        name: name.into(),
        want,
        got,
        met,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_unmeasured_is_neither() {
        for (bound, got, met) in [
            (Bound::AtLeast(1.5), Some(1.5), Some(true)),
            (Bound::AtLeast(1.5), Some(1.4), Some(false)),
            (Bound::AtMost(1.8), Some(1.8), Some(true)),
            (Bound::AtMost(1.8), Some(1.9), Some(false)),
            (Bound::AtMost(1.8), None, None),
        ] {
            assert_eq!(target("x", bound, got).met, met);
        }
    }
}
