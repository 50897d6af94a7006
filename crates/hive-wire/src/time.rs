//! Points in time: milliseconds since 1970 inside, RFC 3339 in UTC outside.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A wall-clock time with millisecond precision.
///
/// It orders nothing: clocks jump. Order comes from message ids and event sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time on this machine's clock.
    pub fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// A time from its count of milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This time, `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// This time, `by` earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long until this time, zero when it has passed.
    pub fn until(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(now.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(time.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_travel_as_rfc_3339() {
        let time = Timestamp::from_millis(1_700_000_000_120);
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, "\"2023-11-14T22:13:20.120Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time);
    }

    #[test]
    fn a_passed_time_is_due_now() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(Timestamp::from_millis(900).until(now), Duration::ZERO);
        assert_eq!(
            now.plus(Duration::from_secs(1)).until(now),
            Duration::from_secs(1)
        );
    }
}
