//! The one error shape on the wire: a code to react to, what happened, and what to do next.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Declares the codes once: as variants, as a list and as the words on the wire.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $code:ident => $name:literal),+ $(,)?) => {
        /// What kind of error it is: one code per different reaction of a caller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $name)] $code,)+
            /// A code this build does not know; it came from a newer peer.
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl ErrorCode {
            /// Every code that this build knows and may send.
            pub const ALL: &'static [Self] = &[$(Self::$code),+];

            /// The code as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

error_codes! {
    /// The line is not JSON, or a field is missing or has the wrong shape.
    BadRequest => "bad_request",
    /// The line is longer than a line may be; the connection is closed.
    LineTooLong => "line_too_long",
    /// The line did not arrive in time; the connection is closed.
    Slow => "slow",
    /// `cmd` names no command of this socket.
    UnknownCommand => "unknown_command",
    /// The named agent, message, question … does not exist.
    NotFound => "not_found",
    /// The caller may not do this.
    Denied => "denied",
    /// It was decided, answered or taken already.
    Conflict => "conflict",
    /// A limit is reached: inbox depth, pending reminders, connections …
    LimitReached => "limit_reached",
    /// `current` was given while no turn is open.
    NoOpenTurn => "no_open_turn",
    /// The turn of this receive ended while it waited.
    TurnEnded => "turn_ended",
    /// The same receive was issued again on another connection, which has it now.
    Replaced => "replaced",
    /// A newer wait of the same agent took the place of this one.
    Superseded => "superseded",
    /// The disk is full; nothing was changed.
    DiskFull => "disk_full",
    /// The store failed; nothing was changed.
    Storage => "storage",
    /// The daemon is stopping; try again after it is back.
    ShuttingDown => "shutting_down",
    /// A part of the hive is not there in this build or on this machine.
    Unsupported => "unsupported",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as it crosses the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{message}")]
pub struct WireError {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// What happened and why.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl WireError {
    /// An error without a hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: String::new(),
        }
    }

    /// The same error with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_travel_as_their_words() {
        for code in ErrorCode::ALL {
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), *code);
        }
    }

    #[test]
    fn a_code_of_a_newer_peer_is_unknown_and_no_failure() {
        let json = r#"{"code":"too_sunny","message":"m","since":"v9"}"#;
        let error: WireError = serde_json::from_str(json).unwrap();
        assert_eq!(error.code, ErrorCode::Unknown);
    }
}
