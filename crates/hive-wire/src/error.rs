//! The one error shape on the wire: a code to react to, what happened, and what to do next.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What kind of error it is: one code per different reaction of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The line is not JSON, or a field is missing or has the wrong shape.
    BadRequest,
    /// The line is longer than a line may be; the connection is closed.
    LineTooLong,
    /// The line did not arrive in time; the connection is closed.
    Slow,
    /// `cmd` names no command of this socket.
    UnknownCommand,
    /// The named agent, message, question … does not exist.
    NotFound,
    /// The caller may not do this.
    Denied,
    /// It was decided, answered or taken already.
    Conflict,
    /// A limit is reached: inbox depth, pending reminders, connections …
    LimitReached,
    /// `current` was given while no turn is open.
    NoOpenTurn,
    /// The turn of this receive ended while it waited.
    TurnEnded,
    /// The same receive was issued again on another connection, which has it now.
    Replaced,
    /// The disk is full; nothing was changed.
    DiskFull,
    /// The store failed; nothing was changed.
    Storage,
    /// The daemon is stopping; try again after it is back.
    ShuttingDown,
    /// A part of the hive is not there in this build or on this machine.
    Unsupported,
    /// A code this build does not know; it came from a newer peer.
    #[serde(other)]
    Unknown,
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
