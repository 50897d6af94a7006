//! Why one operation of a group was not carried out. The others of the group are not affected.

use hive_wire::{ErrorCode, MessageId, WireError, agent::MessageState};
use thiserror::Error;

/// An operation that was refused, or failed alone; it left no trace.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The inbox has as many messages as it may have.
    #[error("the inbox of {recipient} is full: {depth} messages wait there")]
    InboxFull {
        /// Whose inbox.
        recipient: String,
        /// How many messages wait.
        depth: u32,
    },
    /// `current` was given and the agent has no open turn.
    #[error("no turn is open")]
    NoOpenTurn,
    /// The named turn has ended; a turn is not opened twice.
    #[error("turn `{0}` has ended")]
    TurnEnded(String),
    /// A row that the operation needs is not there.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What kind of row.
        what: &'static str,
        /// Its id or name.
        id: String,
    },
    /// The message answers one that its sender neither sent nor received.
    #[error("message {0} is not part of this conversation")]
    NotYourThread(MessageId),
    /// Only a dead letter can be redelivered or discarded.
    #[error("message {id} is {state:?}, not a dead letter")]
    NotDead {
        /// Which message.
        id: MessageId,
        /// Where it stands.
        state: MessageState,
    },
    /// It was decided, answered, cancelled or taken before.
    #[error("{0}")]
    Conflict(String),
    /// As many rows as allowed are there already.
    #[error("{what}: at most {limit} at a time")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u32,
    },
    /// The caller is not the one this row belongs to.
    #[error("{0}")]
    Denied(String),
    /// The stored bytes are not the ones that were written.
    #[error("message {0} is damaged on disk: its checksum does not match")]
    Damaged(MessageId),
    /// SQLite failed; the whole group is rolled back when the disk is full or failing.
    #[error("the database failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl From<&Refusal> for WireError {
    fn from(refusal: &Refusal) -> Self {
        let (code, hint) = match refusal {
            Refusal::InboxFull { .. } => (
                ErrorCode::LimitReached,
                "wait until the recipient has worked some off",
            ),
            Refusal::NoOpenTurn => (ErrorCode::NoOpenTurn, "name a turn of your own in `turn`"),
            Refusal::TurnEnded(_) => (ErrorCode::TurnEnded, "choose a new turn id"),
            Refusal::NotFound { .. } => (ErrorCode::NotFound, ""),
            Refusal::NotYourThread(_) => (
                ErrorCode::Denied,
                "reply to a message that you sent or received",
            ),
            Refusal::NotDead { .. } => (
                ErrorCode::Conflict,
                "`hive-c0re dead` lists the dead letters",
            ),
            Refusal::Conflict(_) => (ErrorCode::Conflict, ""),
            Refusal::TooMany { .. } => {
                (ErrorCode::LimitReached, "cancel or end some of them first")
            }
            Refusal::Denied(_) => (ErrorCode::Denied, ""),
            Refusal::Damaged(_) => (
                ErrorCode::Storage,
                "the disk changed what was written: check it, then restore",
            ),
            Refusal::Sqlite(error) if crate::sqlite::is_disk_full(error) => {
                (ErrorCode::DiskFull, "free some space; nothing was changed")
            }
            Refusal::Sqlite(_) => (
                ErrorCode::Storage,
                "nothing was changed; see the daemon's log",
            ),
        };
        Self::new(code, refusal.to_string()).hint(hint)
    }
}
