//! What an ended turn means, decided in one pure function.
//!
//! It decides by fields of the engine's own events and by how the process ended, never by text of a
//! conversation: an agent may talk about `rate_limit_error` all day. Raw text counts on stderr only,
//! where no conversation goes, and in the engine's own report of a failed compaction.

use hive_wire::Timestamp;

use super::{
    Ended, Exit, Purpose, Stopped,
    facts::{ApiError, ResultFacts, cut},
};

/// What became of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// It ended well.
    Ok,
    /// The conversation was compacted; only for [`Purpose::Compact`].
    Compacted,
    /// The conversation is too long for the model: compact it. The prompt is already part of it.
    TooLong,
    /// The credential is limited.
    RateLimited {
        /// When the limit ends, if the engine said.
        resets_at: Option<Timestamp>,
    },
    /// The credential does not work.
    AuthFailed {
        /// What was said.
        why: String,
    },
    /// The model, or the way to it, is out of order: not the fault of what the turn was about.
    Unavailable {
        /// What was said.
        why: String,
    },
    /// Broken off: by the operator, by the harness's own end, or by SIGINT from elsewhere.
    Interrupted,
    /// It failed in any other way.
    Failed {
        /// What happened and what to do, for people.
        why: String,
    },
}

impl TurnOutcome {
    /// Whether the turn did what it was for.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Ok | Self::Compacted)
    }

    /// One word for statistics and events.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Compacted => "compacted",
            Self::TooLong => "too_long",
            Self::RateLimited { .. } => "rate_limited",
            Self::AuthFailed { .. } => "auth_failed",
            Self::Unavailable { .. } => "unavailable",
            Self::Interrupted => "interrupted",
            Self::Failed { .. } => "failed",
        }
    }
}

/// What an ended turn means.
///
/// A turn is a success when its last `result` is no error and the process exited with 0, waits for
/// more (a warm engine), or was killed only because it stayed after that result.
pub fn classify(ended: &Ended) -> TurnOutcome {
    let facts = &ended.facts;
    let exited_well = match ended.exit {
        Exit::Code(0) | Exit::Alive => true,
        Exit::Code(_) | Exit::Signal(_) => ended.stopped == Some(Stopped::Lingered),
    };
    match &facts.result {
        Some(result) if !result.is_error && exited_well => {
            if ended.purpose != Purpose::Compact {
                return TurnOutcome::Ok;
            }
            if facts.compact.done {
                return TurnOutcome::Compacted;
            }
            return failed_compaction(ended);
        }
        Some(result) => {
            if let Some(outcome) = by_result(ended, result) {
                return outcome;
            }
        }
        None => {
            let none = ApiError::default();
            let error = facts.error.as_ref().unwrap_or(&none);
            if let Some(outcome) = by_error(ended, error) {
                return outcome;
            }
        }
    }
    by_stop(ended)
        .or_else(|| by_stderr(ended))
        .unwrap_or_else(|| failed(ended))
}

/// Reads the fields of a `result`.
fn by_result(ended: &Ended, result: &ResultFacts) -> Option<TurnOutcome> {
    match result.terminal_reason.as_deref() {
        Some("prompt_too_long" | "blocking_limit") => return Some(TurnOutcome::TooLong),
        Some("aborted_streaming" | "aborted_tools") => {
            // An engine that is told to break off also does so because the harness gave it up.
            return by_stop(ended).or(Some(TurnOutcome::Interrupted));
        }
        _ => {}
    }
    by_error(ended, result.error.as_ref()?)
}

/// Reads the fields of an error.
fn by_error(ended: &Ended, error: &ApiError) -> Option<TurnOutcome> {
    let class = error.class.as_deref().unwrap_or_default();
    let kind = error.kind.as_deref().unwrap_or_default();
    let detail = error.detail.as_deref().unwrap_or_default();
    let limited = error.status == Some(429) || class == "rate_limit" || kind == "rate_limit_error";
    let why = || match error.text.is_empty() {
        true => format!("the API answered {kind}{class}"),
        false => error.text.clone(),
    };
    if limited || (ended.facts.limit_hit && error.status.is_none()) {
        return Some(TurnOutcome::RateLimited {
            resets_at: ended.facts.resets_at,
        });
    }
    if class == "billing_error" || kind == "billing_error" {
        let why = format!("{}: the account behind this credential needs credit", why());
        return Some(TurnOutcome::Failed { why });
    }
    let refused = matches!(error.status, Some(401 | 403))
        || class == "authentication_failed"
        || matches!(kind, "authentication_error" | "permission_error");
    if refused {
        return Some(TurnOutcome::AuthFailed { why: why() });
    }
    let out_of_order = matches!(error.status, Some(408 | 500..=599))
        || matches!(class, "server_error" | "overloaded")
        || matches!(kind, "overloaded_error" | "api_error" | "timeout_error")
        || detail == "connection_failed"
        // No status and no class of its own: the API never answered.
        || (error.status.is_none() && class == "unknown");
    out_of_order.then(|| TurnOutcome::Unavailable { why: why() })
}

/// Reads how the harness ended the engine.
fn by_stop(ended: &Ended) -> Option<TurnOutcome> {
    match ended.stopped? {
        Stopped::Interrupted | Stopped::ShutDown => Some(TurnOutcome::Interrupted),
        // Silent while it asked the API again and again: that is the outage, not the turn.
        Stopped::Silent => ended.facts.retry.as_ref().and_then(|e| by_error(ended, e)),
        Stopped::Lingered => None,
    }
}

/// Reads stderr, where no conversation goes.
fn by_stderr(ended: &Ended) -> Option<TurnOutcome> {
    let lines = &ended.stderr_tail;
    let find = |words: &[&str]| lines.iter().find(|l| words.iter().any(|w| has_word(l, w)));
    if find(&["429", "rate_limit", "rate_limit_error"]).is_some() {
        let resets_at = ended.facts.resets_at;
        return Some(TurnOutcome::RateLimited { resets_at });
    }
    let auth = [
        "401",
        "403",
        "authentication_failed",
        "authentication_error",
    ];
    let line = find(&auth).or_else(|| lines.iter().find(|l| l.contains("Not logged in")))?;
    Some(TurnOutcome::AuthFailed { why: line.clone() })
}

/// A `/compact` that ended like a success and compacted nothing.
fn failed_compaction(ended: &Ended) -> TurnOutcome {
    let why = ended.facts.compact.error.as_deref();
    let why = why.unwrap_or("the engine reported no compaction");
    // The engine gives no fields for this error, only its own words with the status in them.
    let status = why.split_once("API Error: ").and_then(|(_, rest)| {
        let digits = rest.trim_start_matches("Request rejected (").get(..3)?;
        digits.parse().ok()
    });
    let class = match why {
        _ if has_any(
            why,
            &["Invalid API key", "Failed to authenticate", "Not logged in"],
        ) =>
        {
            Some("authentication_failed")
        }
        _ if has_any(why, &["Connection", "ECONNREFUSED", "timed out"]) => Some("server_error"),
        _ => None,
    };
    let error = ApiError {
        status,
        class: class.map(str::to_owned),
        text: why.to_owned(),
        ..ApiError::default()
    };
    if why.contains("Prompt is too long") {
        return TurnOutcome::TooLong;
    }
    by_error(ended, &error).unwrap_or_else(|| TurnOutcome::Failed {
        why: format!("the conversation was not compacted: {why}"),
    })
}

/// What is left: say what is known, in the order of how much it tells.
fn failed(ended: &Ended) -> TurnOutcome {
    let facts = &ended.facts;
    let error = facts
        .result
        .as_ref()
        .and_then(|result| result.error.as_ref());
    let said = error
        .or(facts.error.as_ref())
        .map(|error| error.text.as_str());
    let why = match (ended.stopped, said.filter(|text| !text.is_empty())) {
        (Some(Stopped::Silent), _) => {
            "the engine printed nothing for too long and was killed".to_owned()
        }
        (_, Some(text)) => {
            let reason = facts
                .result
                .as_ref()
                .and_then(|r| r.terminal_reason.as_deref());
            reason.map_or_else(|| text.to_owned(), |reason| format!("{text} ({reason})"))
        }
        _ => return died(ended),
    };
    TurnOutcome::Failed { why }
}

/// The process ended without saying why on stdout.
fn died(ended: &Ended) -> TurnOutcome {
    let how = match ended.exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Alive => "an error without a text".to_owned(),
    };
    let silent_end = ended.timeline.first_event.is_none();
    if ended.reused && silent_end && ended.stopped.is_none() {
        let why = format!("the warm engine was gone ({how}) before it took the prompt");
        return TurnOutcome::Unavailable { why };
    }
    let after = match &ended.facts.result {
        Some(result) if !result.is_error => "after its result",
        Some(_) => "with an error",
        None => "without a result",
    };
    let stderr = ended.stderr_tail.iter().rev().take(3).rev();
    let stderr: Vec<_> = stderr.map(String::as_str).collect();
    let mut why = format!("the engine ended {after}: {how}");
    if !stderr.is_empty() {
        why = format!("{why}; stderr: {}", cut(&stderr.join(" | "), 600));
    }
    TurnOutcome::Failed { why }
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Whether the line has the word for itself: `429` in `HTTP 429:`, not in `14290` or `cli.js:429:7`.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let mut after = line[at + word.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.' | '/' | '-');
        let ends = match next {
            Some(':' | '.') => !second.is_some_and(char::is_alphanumeric),
            Some(c) => !(c.is_alphanumeric() || c == '_'),
            None => true,
        };
        ends && !before.is_some_and(joined)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_itself() {
        for line in [
            "429",
            "HTTP 429",
            "error 429: slow down",
            "(429)",
            "status=429, x",
            "429.",
        ] {
            assert!(has_word(line, "429"), "{line}");
        }
        for line in [
            "14290",
            "4290",
            "cli.js:429:7",
            "1.429",
            "429.5",
            "req_429",
            "v2-429",
        ] {
            assert!(!has_word(line, "429"), "{line}");
        }
    }
}
