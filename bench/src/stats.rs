//! The arithmetic of the report: percentiles of one measurement, medians over rounds, ratios.

use std::time::Duration;

/// Latencies of one measurement. Kept whole and sorted once, so that a percentile is a sample that
/// really happened and not the edge of a histogram bucket.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The median and the 99th percentile in microseconds; zeroes when nothing was measured.
    pub(crate) fn summary(mut self) -> Percentiles {
        self.0.sort_unstable();
        Percentiles {
            p50_us: micros(percentile(&self.0, 50)),
            p99_us: micros(percentile(&self.0, 99)),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Percentiles {
    /// Each percentile's own median over the rounds.
    pub(crate) fn median(rounds: &[Self]) -> Self {
        Self {
            p50_us: median(rounds.iter().map(|round| round.p50_us)),
            p99_us: median(rounds.iter().map(|round| round.p99_us)),
        }
    }
}

/// The median, with the mean of the middle two for an even count; zero when there is nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The median of `ours / theirs` round by round.
///
/// Both sides of a round ran within seconds of each other, so a disk that slows down for a minute
/// moves both and leaves the ratio alone; a ratio of medians would mix rounds.
pub(crate) fn median_ratio(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let rounds: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .filter(|(_, theirs)| **theirs > 0.0)
        .map(|(ours, theirs)| ours / theirs)
        .collect();
    (!rounds.is_empty()).then(|| median(rounds))
}

/// The nearest-rank percentile of sorted samples.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(micros: impl IntoIterator<Item = u64>) -> Latencies {
        Latencies(micros.into_iter().map(Duration::from_micros).collect())
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let cases: [(Vec<u64>, f64, f64); 5] = [
            (vec![], 0.0, 0.0),
            (vec![7], 7.0, 7.0),
            (vec![2, 1], 1.0, 2.0),
            ((1..=100).rev().collect(), 50.0, 99.0),
            ((1..=1000).collect(), 500.0, 990.0),
        ];
        for (samples, p50, p99) in cases {
            let count = samples.len();
            let got = latencies(samples).summary();
            assert!((got.p50_us - p50).abs() < 1e-6, "p50 of {count}: {got:?}");
            assert!((got.p99_us - p99).abs() < 1e-6, "p99 of {count}: {got:?}");
        }
    }

    #[test]
    fn absorbing_keeps_every_sample() {
        let mut all = latencies([1, 2]);
        all.absorb(latencies([3, 4, 5]));
        assert!((all.summary().p50_us - 3.0).abs() < 1e-6);
    }

    #[test]
    fn medians() {
        for (values, want) in [
            (&[][..], 0.0),
            (&[4.0][..], 4.0),
            (&[9.0, 1.0][..], 5.0),
            (&[9.0, 1.0, 2.0][..], 2.0),
        ] {
            assert!(
                (median(values.iter().copied()) - want).abs() < 1e-9,
                "{values:?}"
            );
        }
    }

    #[test]
    fn percentiles_have_their_own_medians() {
        let round = |p50_us, p99_us| Percentiles { p50_us, p99_us };
        let got = Percentiles::median(&[round(1.0, 9.0), round(3.0, 5.0), round(2.0, 7.0)]);
        assert_eq!(got, round(2.0, 7.0));
    }

    #[test]
    fn ratios_compare_within_a_round() {
        // The machine halves its speed in the second round: each round still says 2.
        let ratio = median_ratio(&[200.0, 100.0, 200.0], &[100.0, 50.0, 100.0]);
        assert_eq!(ratio, Some(2.0));
        assert_eq!(median_ratio(&[200.0], &[]), None);
        assert_eq!(median_ratio(&[200.0, 30.0], &[0.0, 10.0]), Some(3.0));
    }
}
