//! What a refusal says of the credential: until when it is of no use.

use std::time::Duration;

use hive_providers::anthropic::retry_after;
use hive_wire::Timestamp;
use hyper::{HeaderMap, StatusCode};

/// A shorter wait is between the engine and the service.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// Until when the service refuses this credential, where it says so.
pub(super) fn refused_until(
    status: StatusCode,
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<Timestamp> {
    if status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let unified = text("anthropic-ratelimit-unified-reset")
        .filter(|_| text("anthropic-ratelimit-unified-status") == Some("rejected"))
        .and_then(|seconds| seconds.trim().parse::<i64>().ok())
        .map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1_000)));
    let asked = || Some(now.plus(retry_after(headers)?));
    let until = unified.or_else(asked)?;
    (until > now.plus(WORTH_TELLING)).then_some(until)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);

    #[test]
    fn t6_a_refusal_says_until_when() {
        const STATUS: &str = "anthropic-ratelimit-unified-status";
        const RESET: &str = "anthropic-ratelimit-unified-reset";
        type Case<'a> = (u16, &'a [(&'static str, &'a str)], Option<i64>);
        let cases: &[Case<'_>] = &[
            (429, &[("retry-after", "120")], Some(120)),
            (429, &[("retry-after", "2")], None),
            (429, &[("retry-after", "soon")], None),
            (429, &[], None),
            (529, &[("retry-after", "120")], None),
            (200, &[(STATUS, "allowed"), (RESET, "1000000900")], None),
            (
                429,
                &[(STATUS, "rejected"), (RESET, "1000000900")],
                Some(900),
            ),
            (
                429,
                &[
                    (STATUS, "rejected"),
                    (RESET, "1000000900"),
                    ("retry-after", "60"),
                ],
                Some(900),
            ),
            (
                429,
                &[
                    (STATUS, "allowed"),
                    (RESET, "1000000900"),
                    ("retry-after", "60"),
                ],
                Some(60),
            ),
            (429, &[(STATUS, "rejected"), (RESET, "1")], None),
            (429, &[(STATUS, "rejected"), (RESET, "rubbish")], None),
        ];
        for (status, fields, expected) in cases {
            let headers: HeaderMap = fields
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
                .collect();
            let until = refused_until(StatusCode::from_u16(*status).unwrap(), &headers, NOW);
            let waits = until.map(|until| (until.millis() - NOW.millis()) / 1_000);
            assert_eq!(waits, *expected, "{status} {fields:?}");
        }
    }
}
