//! How long to wait after a turn that could not do its work: pure functions of times.

use std::time::Duration;

use hive_wire::Timestamp;

use crate::environment::Pace;

/// The longest pause between failures of the message itself.
const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(30);
/// The shortest wait for a rate limit whose stated reset has passed already.
const SHORTEST_LIMIT: Duration = Duration::from_secs(5);

/// Until when to wait for a rate limit (T6): its stated reset, within the horizon; after the horizon
/// one turn probes. Without one, the configured time.
pub(crate) fn limit_ends(resets_at: Option<Timestamp>, now: Timestamp, pace: &Pace) -> Timestamp {
    match resets_at {
        None => now.plus(pace.rate_limit_sleep),
        Some(reset) => {
            let earliest = now.plus(SHORTEST_LIMIT.min(pace.rate_limit_sleep));
            reset.max(earliest).min(now.plus(pace.rate_limit_horizon))
        }
    }
}

/// The pause after the service was not to be had for the `nth` time in a row, from 0; `jitter`
/// spreads agents that failed together over a fifth of it.
pub(crate) fn outage_pause(nth: u32, jitter: u8, pace: &Pace) -> Duration {
    let longest = pace.unavailable_longest;
    let pause = doubled(pace.unavailable_first, nth, longest);
    let spread = pause / 5;
    let shift = spread * u32::from(jitter) / u32::from(u8::MAX);
    (pause - spread / 2 + shift).min(longest)
}

/// The pause after the `nth` failure in a row, from 0.
pub(crate) fn failure_pause(nth: u32, pace: &Pace) -> Duration {
    doubled(pace.poll, nth, LONGEST_AFTER_FAILURE.max(pace.poll))
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        crate::environment::Environment::read(Vec::new())
            .unwrap()
            .pace
    }

    #[test]
    fn t6_the_stated_reset_counts_within_the_horizon() {
        let now = Timestamp::from_millis(1_000_000_000);
        let after = |secs: u64| now.plus(Duration::from_secs(secs));
        let cases = [
            ("none stated", None, after(300)),
            ("in a minute", Some(after(60)), after(60)),
            ("passed already", Some(Timestamp::from_millis(0)), after(5)),
            (
                "in a hundred years",
                Some(after(3_153_600_000)),
                after(86_400),
            ),
        ];
        for (what, resets_at, wanted) in cases {
            assert_eq!(limit_ends(resets_at, now, &pace()), wanted, "{what}");
        }
    }

    #[test]
    fn outages_are_waited_for_longer_and_longer_and_not_in_step() {
        let seconds = |nth, jitter| outage_pause(nth, jitter, &pace()).as_secs_f64();
        assert!((1.79..1.81).contains(&seconds(0, 0)), "{}", seconds(0, 0));
        assert!(
            (2.19..2.21).contains(&seconds(0, 255)),
            "{}",
            seconds(0, 255)
        );
        assert!(seconds(3, 128) > 4.0 * seconds(1, 0) * 0.9);
        for nth in [7, 31, 32, u32::MAX] {
            assert!((270.0..=300.0).contains(&seconds(nth, 200)), "{nth}");
        }
    }

    #[test]
    fn failures_in_a_row_slow_down() {
        assert_eq!(failure_pause(0, &pace()), Duration::from_millis(10));
        assert_eq!(failure_pause(3, &pace()), Duration::from_millis(80));
        assert_eq!(failure_pause(u32::MAX, &pace()), Duration::from_secs(30));
    }
}
