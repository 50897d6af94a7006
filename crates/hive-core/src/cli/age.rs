//! How long ago something was, as short as a table wants it.

use hive_wire::Timestamp;

/// The time since `at`, in its largest unit: `12s`, `5m`, `3h`, `40d`.
pub(super) fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.until(at).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_never_negative() {
        let at = Timestamp::from_millis(1_000_000);
        for (later, text) in [
            (-5, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7_200, "2h"),
            (90_000, "1d"),
        ] {
            let now = Timestamp::from_millis(1_000_000 + later * 1000);
            assert_eq!(age(at, now), text);
        }
    }
}
