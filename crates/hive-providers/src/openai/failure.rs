//! What the servers' failures mean, and when to come back.

use hyper::HeaderMap;

use crate::ErrorKind;

/// The status of a failure inside a stream that names none: what its words say, else a server that
/// is broken.
pub(super) fn status_of(code: &str, kind: &str, message: &str) -> u16 {
    let is_too_long = kind_of(400, code, kind, message) == ErrorKind::PromptTooLong;
    match (code, kind) {
        _ if is_too_long => 400,
        ("insufficient_quota" | "rate_limit_exceeded", _)
        | (_, "insufficient_quota" | "rate_limit_error") => 429,
        ("invalid_api_key", _) | (_, "authentication_error") => 401,
        ("model_not_found", _) => 404,
        (_, "invalid_request_error") => 400,
        _ => 500,
    }
}

/// What a failure means.
pub(super) fn kind_of(status: u16, code: &str, kind: &str, message: &str) -> ErrorKind {
    let message = message.to_lowercase();
    let is_too_long = code == "context_length_exceeded"
        || kind == "exceed_context_size_error"
        || message.contains("maximum context length")
        || message.contains("context window")
        || message.contains("exceeds the available context size");
    match status {
        400 | 413 | 422 if is_too_long => ErrorKind::PromptTooLong,
        401 => ErrorKind::Unauthorized,
        402 => ErrorKind::Billing,
        403 => ErrorKind::Forbidden,
        404 => ErrorKind::ModelNotFound,
        408 => ErrorKind::TimedOut,
        413 => ErrorKind::TooLarge,
        429 if code == "insufficient_quota" || kind == "insufficient_quota" => ErrorKind::Billing,
        429 => ErrorKind::RateLimited,
        503 | 529 => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        _ => ErrorKind::BadRequest,
    }
}

/// `x-ratelimit-reset-requests: 1s`, `6m0s`, `120ms`: when the emptied allowance fills again.
pub(super) fn reset_after(headers: &HeaderMap) -> Option<std::time::Duration> {
    ["requests", "tokens"]
        .into_iter()
        .filter(|kind| {
            let left = headers.get(format!("x-ratelimit-remaining-{kind}"));
            left.is_some_and(|left| left == "0")
        })
        .filter_map(|kind| {
            let reset = headers.get(format!("x-ratelimit-reset-{kind}"))?;
            duration(reset.to_str().ok()?)
        })
        .max()
}

fn duration(text: &str) -> Option<std::time::Duration> {
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |end| digits + end);
        total += number
            * match &rest[digits..unit_end] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    std::time::Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_are_read() {
        let seconds = |text| duration(text).map(|d| d.as_secs_f64());
        assert_eq!(seconds("1s"), Some(1.0));
        assert_eq!(seconds("6m0s"), Some(360.0));
        assert_eq!(seconds("120ms"), Some(0.12));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds(""), None);
    }
}
