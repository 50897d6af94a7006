//! What the headers of an answer say about the limits of the credential.
//!
//! Times may be relative (`reset_in_secs`), which suits a demo, or absolute (`reset_at`), which
//! suits a test that compares them.

use hyper::header::{HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, de};

use crate::ask::Api;

/// The limits of a credential.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// After how many seconds to come again, as `retry-after` says it.
    pub retry_after_secs: Option<u64>,
    /// In how many seconds the limit ends.
    pub reset_in_secs: Option<u64>,
    /// When the limit ends: seconds since 1970 or `2030-01-31T12:00:00Z`.
    pub reset_at: Option<Moment>,
    /// The window of a subscription, for the unified headers.
    pub subscription: Option<Window>,
    /// What the unified headers say; without it `rejected` in a fault and else `allowed`.
    pub status: Option<Status>,
    /// How much of the window is used, from 0 to 1.
    pub utilization: Option<f64>,
    /// How many requests are left.
    pub requests_remaining: Option<u64>,
    /// How many tokens are left.
    pub tokens_remaining: Option<u64>,
}

/// A window of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Five hours.
    FiveHour,
    /// A week.
    SevenDay,
}

/// What the unified headers say of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All is well.
    Allowed,
    /// Nearly used up.
    AllowedWarning,
    /// Used up.
    Rejected,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::AllowedWarning => "allowed_warning",
            Self::Rejected => "rejected",
        }
    }
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub Timestamp);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Moment;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("seconds since 1970, or a text like \"2030-01-31T12:00:00Z\"")
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Moment, E> {
                let moment = Timestamp::from_second(seconds).map(Moment);
                moment.map_err(|_| E::custom(format!("{seconds} is no time since 1970")))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Moment, E> {
                let wrong =
                    |_| format!("`{text}` is no time; write it like \"2030-01-31T12:00:00Z\"");
                text.parse().map(Moment).map_err(wrong).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// The headers of `limits` at the time `now`.
pub fn headers(
    limits: &Limits,
    api: Api,
    default_status: Status,
    now: Timestamp,
) -> Vec<(HeaderName, HeaderValue)> {
    let reset = limits.reset(now);
    let mut list = HeaderList(Vec::new());
    if let Some(seconds) = limits.retry_after_secs {
        list.add("retry-after", seconds);
    }
    if api == Api::OpenAi {
        list.add_some("x-ratelimit-remaining-requests", limits.requests_remaining);
        list.add_some("x-ratelimit-remaining-tokens", limits.tokens_remaining);
        let left = reset.map(|reset| format!("{}s", (reset - now).get_seconds().max(0)));
        list.add_some("x-ratelimit-reset-requests", left);
        return list.0;
    }
    match limits.subscription {
        Some(window) => unified(limits, window, default_status, reset, &mut list),
        None => metered(limits, default_status, reset, &mut list),
    }
    list.0
}

/// The headers of a key that is billed by use.
fn metered(
    limits: &Limits,
    default_status: Status,
    reset: Option<Timestamp>,
    list: &mut HeaderList,
) {
    let is_rejected = limits.status.unwrap_or(default_status) == Status::Rejected;
    let spent = is_rejected.then_some(0);
    for (what, limit, remaining) in [
        ("requests", 50, limits.requests_remaining.or(spent)),
        ("tokens", 100_000, limits.tokens_remaining),
    ] {
        let Some(remaining) = remaining else {
            continue;
        };
        list.add(
            &format!("anthropic-ratelimit-{what}-limit"),
            limit.max(remaining),
        );
        list.add(&format!("anthropic-ratelimit-{what}-remaining"), remaining);
        list.add_some(&format!("anthropic-ratelimit-{what}-reset"), reset);
    }
}

/// The headers of a subscription.
fn unified(
    limits: &Limits,
    window: Window,
    default_status: Status,
    reset: Option<Timestamp>,
    list: &mut HeaderList,
) {
    let status = limits.status.unwrap_or(default_status);
    let (claim, short) = match window {
        Window::FiveHour => ("five_hour", "5h"),
        Window::SevenDay => ("seven_day", "7d"),
    };
    let utilization = limits.utilization.unwrap_or(match status {
        Status::Allowed => 0.25,
        Status::AllowedWarning => 0.9,
        Status::Rejected => 1.0,
    });
    let reset = reset.map(Timestamp::as_second);
    let unified = |name: &str| format!("anthropic-ratelimit-unified-{name}");
    list.add(&unified("status"), status.as_str());
    list.add(&unified("representative-claim"), claim);
    list.add_some(&unified("reset"), reset);
    list.add(&unified(&format!("{short}-status")), status.as_str());
    list.add(&unified(&format!("{short}-utilization")), utilization);
    list.add_some(&unified(&format!("{short}-reset")), reset);
    list.add(&unified("fallback-percentage"), 0.5);
    list.add(&unified("overage-status"), "rejected");
    list.add(&unified("overage-disabled-reason"), "org_level_disabled");
}

impl Limits {
    fn reset(&self, now: Timestamp) -> Option<Timestamp> {
        if let Some(Moment(at)) = self.reset_at {
            return Some(at);
        }
        let seconds = i64::try_from(self.reset_in_secs?).ok()?;
        now.checked_add(SignedDuration::from_secs(seconds)).ok()
    }
}

struct HeaderList(Vec<(HeaderName, HeaderValue)>);

impl HeaderList {
    fn add(&mut self, name: &str, value: impl ToString) {
        let name = HeaderName::try_from(name);
        let value = HeaderValue::try_from(value.to_string());
        self.0.extend(name.ok().zip(value.ok()));
    }

    fn add_some(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limits: &Limits, api: Api, default_status: Status) -> String {
        let now = Timestamp::from_second(1_000).unwrap();
        headers(limits, api, default_status, now)
            .iter()
            .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn a_metered_key_is_told_its_reset_as_a_date() {
        let limits = Limits {
            retry_after_secs: Some(7),
            reset_in_secs: Some(60),
            ..Limits::default()
        };
        let expected = "retry-after: 7\n\
            anthropic-ratelimit-requests-limit: 50\n\
            anthropic-ratelimit-requests-remaining: 0\n\
            anthropic-ratelimit-requests-reset: 1970-01-01T00:17:40Z\n";
        assert_eq!(written(&limits, Api::Anthropic, Status::Rejected), expected);
        let expected = "retry-after: 7\nx-ratelimit-reset-requests: 60s\n";
        assert_eq!(written(&limits, Api::OpenAi, Status::Rejected), expected);
    }

    #[test]
    fn a_subscription_is_told_its_window_in_epoch_seconds() {
        let limits = Limits {
            reset_at: Some(Moment(Timestamp::from_second(1_794_772_607).unwrap())),
            subscription: Some(Window::FiveHour),
            ..Limits::default()
        };
        let written = written(&limits, Api::Anthropic, Status::Rejected);
        for line in [
            "anthropic-ratelimit-unified-status: rejected\n",
            "anthropic-ratelimit-unified-reset: 1794772607\n",
            "anthropic-ratelimit-unified-representative-claim: five_hour\n",
            "anthropic-ratelimit-unified-5h-utilization: 1\n",
        ] {
            assert!(written.contains(line), "{line}{written}");
        }
        assert!(!written.contains("retry-after"));
    }
}
