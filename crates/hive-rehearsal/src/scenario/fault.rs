//! What goes wrong on purpose.
//!
//! Three families: an error status in place of an answer, an answer that breaks while it is
//! streamed, and a connection that never gets so far. Keys that mean nothing for the kind are
//! refused, since a test that believes in them would prove nothing.

use std::{fmt, time::Duration};

use hyper::StatusCode;
use serde::{Deserialize, Deserializer, de};

use super::{
    answer::Headers,
    limits::{Limits, Moment, Window},
    number::Millis,
    template::{GroupName, HasGroups, Template},
};

/// A fault.
#[derive(Debug, Clone)]
pub enum Fault {
    /// An error status with the API's own error body.
    Refusal(Refusal),
    /// The answer begins, and breaks.
    Break(Break),
    /// The request is read and nothing ever comes back.
    NoAnswer,
    /// The connection is reset, and for a time every new one is refused.
    Refused(Duration),
    /// The connection is reset, and so are the next ones, before anything is read.
    ResetConnections(u32),
}

/// An error status.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Which one.
    pub kind: ErrorKind,
    /// The message, in place of the one that the real API gives.
    pub message: Option<Template>,
    /// What the headers say about limits.
    pub limits: Limits,
    /// Further headers.
    pub headers: Headers,
}

/// How an answer breaks while it is streamed.
#[derive(Debug, Clone)]
pub struct Break {
    /// What happens.
    pub how: BreakKind,
    /// After so many events of the stream; without it, after the first piece of content.
    pub after_events: Option<usize>,
    /// The error of an error event.
    pub error: ErrorKind,
    /// Its message.
    pub message: Option<Template>,
}

/// What happens to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    /// The connection is reset.
    Reset,
    /// The connection is closed in order, too early.
    Cut,
    /// Nothing more comes, and the connection stays open.
    Stall,
    /// One event is no JSON; the rest follows.
    Malformed,
    /// An `error` event ends the stream.
    ErrorEvent,
}

/// The errors of the APIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// 400: the conversation does not fit.
    PromptTooLong,
    /// 400: anything else about the request.
    BadRequest,
    /// 400: nothing left to pay with.
    Credit,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404: no such model.
    ModelNotFound,
    /// 413.
    TooLarge,
    /// 429.
    RateLimit,
    /// 500.
    ServerError,
    /// 529.
    Overloaded,
    /// Any status.
    Other(StatusCode, String),
}

/// The words for `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindName {
    PromptTooLong,
    BadRequest,
    Credit,
    Unauthorized,
    Forbidden,
    ModelNotFound,
    TooLarge,
    RateLimit,
    ServerError,
    Overloaded,
    Status,
    Reset,
    Cut,
    Stall,
    Malformed,
    ErrorEvent,
    NoAnswer,
    Refused,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: KindName,
    message: Option<Template>,
    status: Option<u16>,
    error_type: Option<String>,
    retry_after_secs: Option<u64>,
    reset_in_secs: Option<u64>,
    reset_at: Option<Moment>,
    subscription: Option<Window>,
    headers: Option<Headers>,
    after_events: Option<usize>,
    for_ms: Option<Millis>,
    connections: Option<u32>,
}

impl Table {
    fn of_kind(kind: KindName) -> Self {
        Self {
            kind,
            message: None,
            status: None,
            error_type: None,
            retry_after_secs: None,
            reset_in_secs: None,
            reset_at: None,
            subscription: None,
            headers: None,
            after_events: None,
            for_ms: None,
            connections: None,
        }
    }

    fn fault(self) -> Result<Fault, String> {
        self.refuse_meaningless()?;
        let how = match self.kind {
            KindName::NoAnswer => return Ok(Fault::NoAnswer),
            KindName::Refused => return self.refused(),
            KindName::Reset => BreakKind::Reset,
            KindName::Cut => BreakKind::Cut,
            KindName::Stall => BreakKind::Stall,
            KindName::Malformed => BreakKind::Malformed,
            KindName::ErrorEvent => BreakKind::ErrorEvent,
            _ => return self.refusal(),
        };
        let error = match self.status {
            Some(status) => other(status, self.error_type)?,
            None => ErrorKind::Overloaded,
        };
        Ok(Fault::Break(Break {
            how,
            after_events: self.after_events,
            error,
            message: self.message,
        }))
    }

    fn refused(self) -> Result<Fault, String> {
        match (self.for_ms, self.connections) {
            (Some(Millis(time)), None) => Ok(Fault::Refused(time)),
            (None, Some(connections)) => Ok(Fault::ResetConnections(connections)),
            _ => Err("`refused` needs either `for_ms` or `connections`".to_owned()),
        }
    }

    fn refusal(self) -> Result<Fault, String> {
        let kind = match self.kind {
            KindName::PromptTooLong => ErrorKind::PromptTooLong,
            KindName::BadRequest => ErrorKind::BadRequest,
            KindName::Credit => ErrorKind::Credit,
            KindName::Unauthorized => ErrorKind::Unauthorized,
            KindName::Forbidden => ErrorKind::Forbidden,
            KindName::ModelNotFound => ErrorKind::ModelNotFound,
            KindName::TooLarge => ErrorKind::TooLarge,
            KindName::RateLimit => ErrorKind::RateLimit,
            KindName::ServerError => ErrorKind::ServerError,
            KindName::Overloaded => ErrorKind::Overloaded,
            _ => {
                let status = self.status.ok_or("kind `status` needs `status`")?;
                other(status, self.error_type)?
            }
        };
        Ok(Fault::Refusal(Refusal {
            kind,
            message: self.message,
            limits: Limits {
                retry_after_secs: self.retry_after_secs,
                reset_in_secs: self.reset_in_secs,
                reset_at: self.reset_at,
                subscription: self.subscription,
                ..Limits::default()
            },
            headers: self.headers.unwrap_or_default(),
        }))
    }

    /// A key that the kind does not look at.
    fn refuse_meaningless(&self) -> Result<(), String> {
        use KindName as K;
        let is_break = matches!(
            self.kind,
            K::Reset | K::Cut | K::Stall | K::Malformed | K::ErrorEvent
        );
        let is_refusal = !is_break && !matches!(self.kind, K::NoAnswer | K::Refused);
        let has_status = matches!(self.kind, K::Status | K::ErrorEvent);
        for (key, is_given, is_wanted) in [
            (
                "message",
                self.message.is_some(),
                is_refusal || self.kind == K::ErrorEvent,
            ),
            ("status", self.status.is_some(), has_status),
            ("error_type", self.error_type.is_some(), has_status),
            (
                "retry_after_secs",
                self.retry_after_secs.is_some(),
                is_refusal,
            ),
            ("reset_in_secs", self.reset_in_secs.is_some(), is_refusal),
            ("reset_at", self.reset_at.is_some(), is_refusal),
            ("subscription", self.subscription.is_some(), is_refusal),
            ("headers", self.headers.is_some(), is_refusal),
            ("after_events", self.after_events.is_some(), is_break),
            ("for_ms", self.for_ms.is_some(), self.kind == K::Refused),
            (
                "connections",
                self.connections.is_some(),
                self.kind == K::Refused,
            ),
        ] {
            if is_given && !is_wanted {
                return Err(format!("`{key}` means nothing for this kind of fault"));
            }
        }
        Ok(())
    }
}

fn other(status: u16, error_type: Option<String>) -> Result<ErrorKind, String> {
    let code = StatusCode::from_u16(status).ok();
    let code = code.filter(|code| code.is_client_error() || code.is_server_error());
    let code = code.ok_or_else(|| format!("{status} is no error status: 400 to 599"))?;
    let error_type = error_type.unwrap_or_else(|| "api_error".to_owned());
    Ok(ErrorKind::Other(code, error_type))
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Fault;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the kind of a fault, or a table with `kind`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Fault, E> {
                let kind = KindName::deserialize(de::value::StrDeserializer::new(word))?;
                Table::of_kind(kind).fault().map_err(E::custom)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Fault, A::Error> {
                let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                table.fault().map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl HasGroups for Fault {
    fn missing_group(&self, has_group: &dyn Fn(&GroupName<'_>) -> bool) -> Option<String> {
        match self {
            Self::Refusal(refusal) => refusal.message.missing_group(has_group),
            Self::Break(broken) => broken.message.missing_group(has_group),
            Self::NoAnswer | Self::Refused(_) | Self::ResetConnections(_) => None,
        }
    }
}
