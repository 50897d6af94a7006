//! Why a model did not answer, and what to do about it.

use std::time::Duration;

use serde_json::{Map, Value, json};
use thiserror::Error;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{message}")]
pub struct ApiError {
    /// What happened.
    pub kind: ErrorKind,
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// The provider's word for it, such as `rate_limit_error`.
    pub api_type: Option<String>,
    /// What the provider says, without secrets.
    pub message: String,
    /// How long it asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether it says that asking again may help; it may not say.
    pub should_retry: Option<bool>,
    /// The limit that was hit, when it says so.
    pub limit: Option<Box<RateLimit>>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// What happened: one kind per different reaction or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no key.
    NoKey,
    /// The key is wrong.
    Unauthorized,
    /// The key may not do this.
    Forbidden,
    /// The account has no money.
    Billing,
    /// Too many requests just now.
    RateLimited,
    /// A quota is used up until its reset.
    LimitReached,
    /// The provider has too much to do.
    Overloaded,
    /// The provider is broken.
    Server,
    /// Nobody answers there, or the line was dropped before an answer.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// The answer stopped arriving.
    Stalled,
    /// The answer broke off after a part of it was whole.
    BrokenOff,
    /// The answer is not what the API promises.
    Malformed,
    /// The conversation exceeds the model's window.
    PromptTooLong,
    /// The request exceeds the provider's limit in bytes.
    TooLarge,
    /// There is no such model.
    ModelNotFound,
    /// The request is wrong.
    BadRequest,
}

/// What the caller should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Ask again after a while; it may work.
    Retry,
    /// Make the conversation shorter.
    Shorten,
    /// Get a valid key.
    LogIn,
    /// Wait for the stated reset.
    WaitForReset,
    /// Asking again cannot help.
    GiveUp,
}

impl ApiError {
    /// An error without an HTTP answer.
    pub fn local(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            api_type: None,
            message: message.into(),
            retry_after: None,
            should_retry: None,
            limit: None,
            request_id: None,
        }
    }

    /// What to do about it.
    pub fn reaction(&self) -> Reaction {
        match self.kind {
            ErrorKind::NoKey | ErrorKind::Unauthorized | ErrorKind::Forbidden => Reaction::LogIn,
            ErrorKind::RateLimited
            | ErrorKind::Overloaded
            | ErrorKind::Server
            | ErrorKind::Unreachable
            | ErrorKind::TimedOut
            | ErrorKind::Stalled
            | ErrorKind::Malformed => Reaction::Retry,
            ErrorKind::LimitReached => Reaction::WaitForReset,
            ErrorKind::PromptTooLong | ErrorKind::TooLarge => Reaction::Shorten,
            ErrorKind::Billing
            | ErrorKind::BrokenOff
            | ErrorKind::ModelNotFound
            | ErrorKind::BadRequest => Reaction::GiveUp,
        }
    }
}

/// A usage limit as the provider reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: String,
    /// When it ends, in seconds since 1970.
    pub resets_at: Option<u64>,
    /// Which one, such as `five_hour`.
    pub limit_type: Option<String>,
    /// The share that is used.
    pub utilization: Option<f64>,
    /// Whether paying beyond the limit is possible.
    pub overage_status: Option<String>,
    /// Why it is not.
    pub overage_disabled_reason: Option<String>,
    /// The windows that it counts.
    pub windows: Vec<Window>,
}

/// A span of time that a limit counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Such as `five_hour`.
    pub name: String,
    /// The share that is used.
    pub utilization: Option<f64>,
    /// When it ends, in seconds since 1970.
    pub resets_at: Option<u64>,
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: Option<String>,
}

impl RateLimit {
    /// Whether it stops requests.
    pub fn is_rejected(&self) -> bool {
        self.status == "rejected"
    }

    /// As `claude` prints it.
    pub fn to_json(&self) -> Value {
        let mut info = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                info.insert(key.into(), value);
            }
        };
        put("status", Some(json!(self.status)));
        put("resetsAt", self.resets_at.map(|at| json!(at)));
        put("rateLimitType", self.limit_type.as_ref().map(|t| json!(t)));
        put("utilization", self.utilization.map(|share| json!(share)));
        put(
            "overageStatus",
            self.overage_status.as_ref().map(|s| json!(s)),
        );
        put(
            "overageDisabledReason",
            self.overage_disabled_reason.as_ref().map(|s| json!(s)),
        );
        put("isUsingOverage", Some(json!(false)));
        let windows: Map<String, Value> = self
            .windows
            .iter()
            .map(|window| {
                let value = json!({
                    "utilization": window.utilization,
                    "resetsAt": window.resets_at,
                    "status": window.status,
                });
                (window.name.clone(), value)
            })
            .collect();
        if !windows.is_empty() {
            put("unifiedWindows", Some(Value::Object(windows)));
        }
        Value::Object(info)
    }
}
