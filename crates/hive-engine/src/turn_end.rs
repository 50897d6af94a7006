//! How a turn ends: the one reason that is written down, and what the stream-json contract calls it.

use hive_providers::{ApiError, ErrorKind};
use serde::{Deserialize, Serialize};

/// The ten ways in which a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model was done.
    EndTurn,
    /// The answer hit its longest length, and going on did not help.
    MaxTokens,
    /// A stop sequence was met.
    StopSequence,
    /// The model wants more tool calls than it may make.
    ToolUse,
    /// The provider's filter stopped the answer.
    ContentFilter,
    /// The time limit passed.
    Timeout,
    /// Someone interrupted.
    UserInterrupt,
    /// Something failed for good.
    Error,
    /// A quota is used up.
    RateLimit,
    /// The conversation does not fit into the window.
    ContextOverflow,
}

/// How a turn ended, with all that the contract wants to know.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// The reason.
    pub reason: EndReason,
    /// The contract's word.
    pub terminal_reason: &'static str,
    /// The last words of the model, or the text of the failure.
    pub text: String,
    /// What the provider said last, such as `end_turn`.
    pub stop_reason: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The provider did not answer; `success` with `is_error` in the contract.
    Api(Box<ApiFailure>),
    /// A limit of ours or an interruption: an `error_…` subtype.
    Own {
        /// The subtype.
        subtype: &'static str,
        /// What to tell.
        message: String,
    },
}

/// A provider's failure in the contract's words.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiFailure {
    /// What the user reads.
    pub text: String,
    /// The class, such as `rate_limit`.
    pub error: &'static str,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The provider's word.
    pub api_type: Option<String>,
    /// `connection_failed`, `usage_limit_reached`.
    pub api_error: Option<&'static str>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

impl TurnEnd {
    /// The model was done.
    pub fn completed(reason: EndReason, text: String, stop_reason: Option<String>) -> Self {
        Self {
            reason,
            terminal_reason: "completed",
            text,
            stop_reason,
            failure: None,
        }
    }

    /// A limit of ours or an interruption.
    pub fn own(
        reason: EndReason,
        terminal_reason: &'static str,
        subtype: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            terminal_reason,
            text: String::new(),
            stop_reason: None,
            failure: Some(Failure::Own {
                subtype,
                message: message.into(),
            }),
        }
    }

    /// The conversation is known not to fit, so nothing was asked.
    pub fn blocked() -> Self {
        let failure = ApiFailure {
            text: "Prompt is too long".into(),
            error: "invalid_request",
            status: None,
            api_type: None,
            api_error: None,
            request_id: None,
        };
        Self {
            reason: EndReason::ContextOverflow,
            terminal_reason: "blocking_limit",
            text: failure.text.clone(),
            stop_reason: Some("stop_sequence".into()),
            failure: Some(Failure::Api(Box::new(failure))),
        }
    }

    /// The provider did not answer.
    pub fn api(error: &ApiError, model: &str, authority: &str) -> Self {
        let (text, class) = words(error, model, authority);
        let terminal_reason = match error.kind {
            ErrorKind::PromptTooLong => "prompt_too_long",
            ErrorKind::TooLarge => "image_error",
            _ => "api_error",
        };
        let reason = match error.kind {
            ErrorKind::PromptTooLong | ErrorKind::TooLarge => EndReason::ContextOverflow,
            ErrorKind::RateLimited | ErrorKind::LimitReached => EndReason::RateLimit,
            ErrorKind::TimedOut | ErrorKind::Stalled => EndReason::Timeout,
            _ => EndReason::Error,
        };
        let api_error = match error.kind {
            ErrorKind::Unreachable => Some("connection_failed"),
            ErrorKind::LimitReached => Some("usage_limit_reached"),
            _ => None,
        };
        Self {
            reason,
            terminal_reason,
            text: text.clone(),
            stop_reason: Some("stop_sequence".into()),
            failure: Some(Failure::Api(Box::new(ApiFailure {
                text,
                error: class,
                status: error.status,
                api_type: error.api_type.clone(),
                api_error,
                request_id: error.request_id.clone(),
            }))),
        }
    }

    /// The process's exit code when this was its last turn.
    pub fn exit_code(&self) -> u8 {
        match (&self.failure, self.reason) {
            // As `claude` does: an interruption is what the user wanted.
            (None, _) | (_, EndReason::UserInterrupt) => 0,
            (Some(_), _) => 1,
        }
    }
}

/// The class of a failure as `api_retry` and `assistant` events name it.
pub fn class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NoKey | ErrorKind::Unauthorized | ErrorKind::Forbidden => {
            "authentication_failed"
        }
        ErrorKind::Billing => "billing_error",
        ErrorKind::RateLimited | ErrorKind::LimitReached => "rate_limit",
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::Server => "server_error",
        ErrorKind::PromptTooLong | ErrorKind::TooLarge => "invalid_request",
        ErrorKind::ModelNotFound => "model_not_found",
        ErrorKind::Unreachable
        | ErrorKind::TimedOut
        | ErrorKind::Stalled
        | ErrorKind::BrokenOff
        | ErrorKind::Malformed
        | ErrorKind::BadRequest => "unknown",
    }
}

/// What the user reads, and the class of the synthetic message.
fn words(error: &ApiError, model: &str, authority: &str) -> (String, &'static str) {
    let message = error.message.as_str();
    let status = error.status.unwrap_or(0);
    let text = match error.kind {
        ErrorKind::NoKey => "Not logged in · Please run /login".to_owned(),
        ErrorKind::Unauthorized => "Invalid API key · Fix external API key".to_owned(),
        ErrorKind::Forbidden => format!("Failed to authenticate. API Error: {status} {message}"),
        ErrorKind::Billing => "Credit balance is too low".to_owned(),
        ErrorKind::RateLimited => format!("API Error: Request rejected (429) · {message}"),
        ErrorKind::LimitReached => limit_reached(error),
        ErrorKind::Overloaded => format!(
            "API Error: {status} Overloaded. This is a server-side issue, usually temporary — try \
             again in a moment. If it persists, check your inference gateway ({authority})."
        ),
        ErrorKind::Server => format!(
            "API Error: {status} {message}. This is a server-side issue, usually temporary — try \
             again in a moment. If it persists, check your inference gateway ({authority})."
        ),
        ErrorKind::TimedOut => "Request timed out".to_owned(),
        ErrorKind::Stalled => "The response stopped arriving".to_owned(),
        ErrorKind::BrokenOff => "API Error: Server error mid-response. The response above may be \
                                 incomplete."
            .to_owned(),
        ErrorKind::PromptTooLong => "Prompt is too long".to_owned(),
        ErrorKind::TooLarge => "Request too large (max 32MB). Accumulated images and attachments \
                                in the conversation pushed the request over the limit. Remove \
                                older images or compact the conversation."
            .to_owned(),
        ErrorKind::ModelNotFound => format!(
            "There's an issue with the selected model ({model}). It may not exist or you may not \
             have access to it. Run --model to pick a different model."
        ),
        ErrorKind::Unreachable | ErrorKind::Malformed => format!("API Error: {message}"),
        ErrorKind::BadRequest => match error.status {
            Some(status) => format!("API Error: {status} {message}"),
            None => format!("API Error: {message}"),
        },
    };
    let class = match error.kind {
        // The synthetic message of an outage says server_error, whatever its retries said.
        ErrorKind::Overloaded | ErrorKind::Unreachable => "server_error",
        kind => class(kind),
    };
    (text, class)
}

/// `You've hit your 5-hour limit · resets 7:56pm (UTC)`.
fn limit_reached(error: &ApiError) -> String {
    let limit = error.limit.as_ref();
    let name = match limit.and_then(|limit| limit.limit_type.as_deref()) {
        Some("five_hour") => "5-hour",
        Some("seven_day") => "weekly",
        Some("seven_day_opus") => "Opus",
        Some("seven_day_sonnet") => "Sonnet",
        _ => "usage",
    };
    let reset = limit
        .and_then(|limit| limit.resets_at)
        .and_then(|at| i64::try_from(at).ok())
        .and_then(|at| jiff::Timestamp::from_second(at).ok())
        .map(|at| {
            let time = at.to_zoned(jiff::tz::TimeZone::UTC);
            let (hour, minute) = (time.hour(), time.minute());
            let half = if hour < 12 { "am" } else { "pm" };
            let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
            format!(" · resets {hour}:{minute:02}{half} (UTC)")
        })
        .unwrap_or_default();
    format!("You've hit your {name} limit{reset}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hive_providers::RateLimit;

    fn error(kind: ErrorKind, status: Option<u16>, message: &str) -> ApiError {
        ApiError {
            status,
            ..ApiError::local(kind, message)
        }
    }

    /// The texts and fields of the real program, from its recorded transcripts.
    #[expect(clippy::too_many_lines, reason = "a table")]
    #[test]
    fn failures_read_as_claude_words_them() {
        for (error, text, terminal, class, reason) in [
            (
                error(ErrorKind::NoKey, None, ""),
                "Not logged in · Please run /login",
                "api_error",
                "authentication_failed",
                EndReason::Error,
            ),
            (
                error(ErrorKind::Unauthorized, Some(401), "x"),
                "Invalid API key · Fix external API key",
                "api_error",
                "authentication_failed",
                EndReason::Error,
            ),
            (
                error(
                    ErrorKind::Forbidden,
                    Some(403),
                    "Your account does not have access",
                ),
                "Failed to authenticate. API Error: 403 Your account does not have access",
                "api_error",
                "authentication_failed",
                EndReason::Error,
            ),
            (
                error(
                    ErrorKind::BadRequest,
                    Some(400),
                    "messages: something is wrong",
                ),
                "API Error: 400 messages: something is wrong",
                "api_error",
                "unknown",
                EndReason::Error,
            ),
            (
                error(ErrorKind::PromptTooLong, Some(400), "x"),
                "Prompt is too long",
                "prompt_too_long",
                "invalid_request",
                EndReason::ContextOverflow,
            ),
            (
                error(ErrorKind::RateLimited, Some(429), "slow"),
                "API Error: Request rejected (429) · slow",
                "api_error",
                "rate_limit",
                EndReason::RateLimit,
            ),
            (
                error(ErrorKind::Overloaded, Some(529), "Overloaded"),
                "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:8765).",
                "api_error",
                "server_error",
                EndReason::Error,
            ),
            (
                error(ErrorKind::Billing, Some(400), "x"),
                "Credit balance is too low",
                "api_error",
                "billing_error",
                EndReason::Error,
            ),
        ] {
            let end = TurnEnd::api(&error, "m", "127.0.0.1:8765");
            assert_eq!(end.text, text);
            assert_eq!(end.terminal_reason, terminal, "{text}");
            assert_eq!(end.reason, reason, "{text}");
            assert_eq!(end.exit_code(), 1);
            let Some(Failure::Api(failure)) = end.failure else {
                panic!()
            };
            assert_eq!(failure.error, class, "{text}");
        }
    }

    #[test]
    fn a_limit_says_when_it_ends() {
        let mut error = error(ErrorKind::LimitReached, Some(429), "x");
        error.limit = Some(Box::new(RateLimit {
            status: "rejected".into(),
            resets_at: Some(1_794_772_607),
            limit_type: Some("five_hour".into()),
            utilization: None,
            overage_status: None,
            overage_disabled_reason: None,
            windows: vec![],
        }));
        let end = TurnEnd::api(&error, "m", "h");
        assert_eq!(
            end.text,
            "You've hit your 5-hour limit · resets 7:56pm (UTC)"
        );
    }

    #[test]
    fn an_interruption_is_no_failure_of_the_process() {
        let end = TurnEnd::own(
            EndReason::UserInterrupt,
            "aborted_tools",
            "error_during_execution",
            "x",
        );
        assert_eq!(end.exit_code(), 0);
        assert_eq!(
            TurnEnd::own(EndReason::ToolUse, "max_turns", "error_max_turns", "x").exit_code(),
            1
        );
    }
}
