//! When a recurring schedule fires: cron expressions of five fields in a time zone (M12). Pure.
//!
//! Five fields are minutes at best, so that two firings are at least a minute apart. An expression
//! comes from an agent: it is bounded in length, and one that never fires is found out by looking at
//! the days of eight years instead of searching for centuries.

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use hive_wire::{Timestamp, text};
use jiff::{Zoned, civil::Date, tz::TimeZone};

/// The longest expression, in bytes.
const MAX_CRON: usize = 100;
/// The longest name of a time zone, in bytes.
const MAX_ZONE: usize = 64;
/// How many firings that were missed are counted.
const MAX_COUNTED: u32 = 100;
/// Every combination of day and weekday that a calendar has comes within so many days, but for a
/// 29th of February on one weekday.
const DAYS_LOOKED_AT: usize = 8 * 366;

/// A recurrence: an expression in a time zone.
#[derive(Debug, Clone)]
pub(crate) struct Recurrence {
    cron: Cron,
    zone: TimeZone,
}

/// What fell due until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// How often, at least: no more than a hundred are counted.
    pub(crate) count: u32,
    /// When it is due after now; none when never.
    pub(crate) next: Option<Timestamp>,
}

impl Recurrence {
    /// Reads an expression and the name of a time zone; UTC when there is none.
    ///
    /// # Errors
    /// With what is wrong and what is expected.
    pub(crate) fn parse(cron: &str, zone: Option<&str>) -> Result<Self, String> {
        let shown = text::printable(&text::shorten(cron, 60));
        let refuse = |why: String| {
            format!("`{shown}` is no cron expression: {why}; write `minute hour day month weekday`")
        };
        if cron.len() > MAX_CRON {
            return Err(refuse(format!("it has more than {MAX_CRON} bytes")));
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser
            .parse(cron)
            .map_err(|error| refuse(text::printable(&error.to_string())))?;
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => time_zone(name)?,
        };
        if !has_a_day(&cron) {
            return Err(refuse("it never fires".to_owned()));
        }
        Ok(Self { cron, zone })
    }

    /// The first firing after this time; none when there is none before the calendar ends.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = jiff::Timestamp::from_millisecond(after.millis()).ok()?;
        let after: Zoned = after.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&after, false).ok()?;
        Some(Timestamp::from_millis(next.timestamp().as_millisecond()))
    }

    /// What fell due from `first`, which is due, until `now`.
    pub(crate) fn due(&self, first: Timestamp, now: Timestamp) -> Due {
        let (mut count, mut last) = (1, first);
        while let Some(next) = self.next(last) {
            if next > now {
                return Due {
                    count,
                    next: Some(next),
                };
            }
            if count == MAX_COUNTED {
                break;
            }
            count += 1;
            last = next;
        }
        Due {
            count,
            next: self.next(now),
        }
    }
}

fn time_zone(name: &str) -> Result<TimeZone, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_+-/".contains(c);
    let known = (1..=MAX_ZONE).contains(&name.len()) && name.chars().all(legal);
    let zone = known.then(|| TimeZone::get(name).ok()).flatten();
    zone.ok_or_else(|| {
        let shown = text::printable(&text::shorten(name, 60));
        format!("there is no time zone `{shown}`; write it like `Europe/Vienna` or `UTC`")
    })
}

/// Whether any day of some years is one on which it fires, at its first hour and minute.
fn has_a_day(cron: &Cron) -> bool {
    let first = |values: Vec<u16>| values.first().and_then(|value| i8::try_from(*value).ok());
    let (hours, minutes) = (cron.pattern.hours.values(), cron.pattern.minutes.values());
    let (Some(hour), Some(minute)) = (first(hours), first(minutes)) else {
        return false;
    };
    let days = Date::constant(2024, 1, 1).series(jiff::Span::new().days(1));
    days.take(DAYS_LOOKED_AT)
        .filter_map(|day| day.at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).ok())
        .any(|time| cron.is_time_matching(&time).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn m12_expressions_fire_by_the_clock_of_their_zone() {
        for (cron, zone, after, next) in [
            (
                "30 7 * * 1-5",
                None,
                "2026-01-02T08:00:00Z",
                "2026-01-05T07:30:00Z",
            ),
            (
                "30 7 * * *",
                Some("Europe/Vienna"),
                "2026-01-05T00:00:00Z",
                "2026-01-05T06:30:00Z",
            ),
            (
                "30 7 * * *",
                Some("Europe/Vienna"),
                "2026-07-05T00:00:00Z",
                "2026-07-05T05:30:00Z",
            ),
            (
                "*/15 * * * *",
                None,
                "2026-01-01T00:00:01Z",
                "2026-01-01T00:15:00Z",
            ),
            (
                "0 0 29 2 *",
                None,
                "2026-01-01T00:00:00Z",
                "2028-02-29T00:00:00Z",
            ),
            (
                "0 12 * * MON",
                None,
                "2026-01-01T00:00:00Z",
                "2026-01-05T12:00:00Z",
            ),
            // The hour that the clock skips: it fires when the clock has moved on.
            (
                "30 2 29 3 *",
                Some("Europe/Vienna"),
                "2026-03-28T12:00:00Z",
                "2026-03-29T01:00:00Z",
            ),
            // The hour that comes twice: it fires once.
            (
                "30 2 * * *",
                Some("Europe/Vienna"),
                "2026-10-25T00:30:00Z",
                "2026-10-26T01:30:00Z",
            ),
        ] {
            let recurrence = Recurrence::parse(cron, zone).unwrap();
            assert_eq!(
                recurrence.next(at(after)),
                Some(at(next)),
                "{cron} {zone:?}"
            );
        }
    }

    #[test]
    fn m12_two_firings_are_at_least_a_minute_apart() {
        let every_minute = Recurrence::parse("* * * * *", Some("Europe/Vienna")).unwrap();
        // Over the hour that comes twice.
        let mut time = at("2026-10-24T23:30:00Z");
        for _ in 0..300 {
            let next = every_minute.next(time).unwrap();
            assert_eq!(next.millis() - time.millis(), 60_000, "{time}");
            time = next;
        }
    }

    #[test]
    fn m12_bad_expressions_say_what_is_wrong() {
        for (cron, zone, expected) in [
            ("", None, "minute hour day month weekday"),
            ("* * * *", None, "minute hour day month weekday"),
            ("* * * * * *", None, "minute hour day month weekday"),
            ("60 * * * *", None, "minute hour day month weekday"),
            ("@reboot", None, "minute hour day month weekday"),
            ("0 0 30 2 *", None, "never fires"),
            ("0 0 31 4,6,9,11 *", None, "never fires"),
            ("0 9 * * *", Some("Mars/Base"), "no time zone `Mars/Base`"),
            ("0 9 * * *", Some("../../etc/passwd"), "no time zone"),
            ("0 9 * * *", Some(""), "no time zone"),
        ] {
            let error = Recurrence::parse(cron, zone).unwrap_err();
            assert!(error.contains(expected), "{cron:?} {zone:?}: {error}");
        }
        let long = format!("0{} 9 * * *", ",0".repeat(60));
        assert!(Recurrence::parse(&long, None).is_err());
        let hostile = Recurrence::parse("\u{1b}[2J * * * *", None).unwrap_err();
        assert!(!hostile.contains('\u{1b}'), "{hostile:?}");
    }

    #[test]
    fn m12_what_was_missed_is_counted_and_bounded() {
        let hourly = Recurrence::parse("0 * * * *", None).unwrap();
        let first = at("2026-01-01T01:00:00Z");
        for (now, count, next) in [
            ("2026-01-01T01:00:00Z", 1, "2026-01-01T02:00:00Z"),
            ("2026-01-01T01:59:59Z", 1, "2026-01-01T02:00:00Z"),
            ("2026-01-01T05:30:00Z", 5, "2026-01-01T06:00:00Z"),
            ("2027-01-01T05:30:00Z", 100, "2027-01-01T06:00:00Z"),
        ] {
            let due = hourly.due(first, at(now));
            assert_eq!((due.count, due.next), (count, Some(at(next))), "{now}");
        }
    }
}
