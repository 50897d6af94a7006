//! What clients asked and heard, as they saw it themselves.
//!
//! A history knows nothing of the daemon's inside. Times come from one monotonic clock that all
//! clients share. A call whose reply was lost is `Unknown`: it may have been carried out, then or
//! until the daemon next died, or never. A call that certainly never reached the daemon is not
//! recorded.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::Path,
};

use hive_wire::{
    ErrorCode, MessageId, ReqId, SendKey, TurnId,
    agent::{Receipt, RequeueReason, TurnClosed},
};
use serde::{Deserialize, Serialize};

/// Nanoseconds on the clock that all clients share.
pub type Nanos = u64;

/// Everything that happened, with what was found after the last restart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The calls. The order of the list means nothing; their times do.
    pub ops: Vec<Op>,
    /// When the daemon was known to be dead, after each of its deaths, ascending.
    pub crashes: Vec<Nanos>,
    /// The receipts of all known messages, read after every inbox was drained.
    pub receipts: Vec<Receipt>,
    /// The dead letters that the operator was shown at the end.
    pub dead: Vec<MessageId>,
    /// After how many counted failures a message becomes a dead letter.
    pub dead_after: u32,
}

/// One call of one client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// Who called.
    pub client: u32,
    /// Whose socket it used: an agent, or `operator` for the admin socket.
    pub agent: String,
    /// When the call began.
    pub invoke: Nanos,
    /// When its reply was read, or when the client gave up on it.
    pub complete: Nanos,
    /// What was called.
    pub call: Call,
}

/// What was asked and what was heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `send`.
    Send {
        /// The recipient.
        to: String,
        /// The sender's own name for the message.
        key: Option<SendKey>,
        /// What was said; every message says something else.
        body: Body,
        /// The message's id.
        outcome: Outcome<MessageId>,
    },
    /// `recv`.
    Recv {
        /// The turn, `current`, or none for a receive that acks at once.
        turn: Option<TurnId>,
        /// The name of the receive.
        req: Option<ReqId>,
        /// How many messages to take.
        max: u32,
        /// The batch.
        outcome: Outcome<Vec<Delivery>>,
    },
    /// `confirm`.
    Confirm {
        /// The turn or `current`.
        turn: TurnId,
        /// The receive.
        req: ReqId,
        /// How many messages the batch holds.
        outcome: Outcome<u32>,
    },
    /// `ack_turn`.
    Ack {
        /// The turn.
        turn: TurnId,
        /// The messages it dealt with.
        ids: Vec<MessageId>,
        /// How the turn stands.
        outcome: Outcome<TurnClosed>,
    },
    /// `requeue_inflight`.
    Requeue {
        /// The turn.
        turn: TurnId,
        /// Why.
        reason: RequeueReason,
        /// How the turn stands.
        outcome: Outcome<TurnClosed>,
    },
}

impl Call {
    /// Whether the reply was lost.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Send { outcome, .. } => *outcome == Outcome::Unknown,
            Self::Recv { outcome, .. } => *outcome == Outcome::Unknown,
            Self::Confirm { outcome, .. } => *outcome == Outcome::Unknown,
            Self::Ack { outcome, .. } | Self::Requeue { outcome, .. } => {
                *outcome == Outcome::Unknown
            }
        }
    }

    /// Makes the reply a lost one.
    pub fn lose_reply(&mut self) {
        match self {
            Self::Send { outcome, .. } => *outcome = Outcome::Unknown,
            Self::Recv { outcome, .. } => *outcome = Outcome::Unknown,
            Self::Confirm { outcome, .. } => *outcome = Outcome::Unknown,
            Self::Ack { outcome, .. } | Self::Requeue { outcome, .. } => {
                *outcome = Outcome::Unknown;
            }
        }
    }
}

/// What a client heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<T> {
    /// It was carried out.
    Ok(T),
    /// It was refused; nothing was changed.
    Refused(ErrorCode),
    /// The reply was lost.
    Unknown,
}

impl<T> Outcome<T> {
    /// The reply of a call that was carried out.
    pub fn ok(&self) -> Option<&T> {
        match self {
            Self::Ok(reply) => Some(reply),
            Self::Refused(_) | Self::Unknown => None,
        }
    }

    /// Whether the call was, or may have been, carried out.
    pub fn possible(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    /// Whether the call may have been carried out without its client hearing the result.
    ///
    /// A receive that was cut short tells nothing about what it was given before.
    pub fn lossy(&self) -> bool {
        match self {
            Self::Ok(_) => false,
            Self::Refused(code) => matches!(
                code,
                ErrorCode::TurnEnded | ErrorCode::Replaced | ErrorCode::ShuttingDown
            ),
            Self::Unknown => true,
        }
    }
}

/// A message as a receive returned it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its id.
    pub id: MessageId,
    /// Who it is from, as stamped by the host.
    pub from: String,
    /// What it says.
    pub body: Body,
    /// How often it has been handed over, this time included.
    pub delivery: u32,
}

/// A body, short enough to keep: its first word, which no other message has, and a digest of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The first word.
    pub tag: String,
    /// FNV-1a of the whole.
    pub digest: u64,
}

impl Body {
    /// What is kept of a body.
    pub fn of(text: &str) -> Self {
        let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let tag = text.split(' ').next().unwrap_or_default();
        Self {
            tag: tag.chars().take(64).collect(),
            digest,
        }
    }
}

/// One line of a history file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    DeadAfter(u32),
    Op(Op),
    Crash(Nanos),
    Receipt(Receipt),
    Dead(MessageId),
}

impl History {
    /// Writes the history as JSON lines.
    ///
    /// # Errors
    /// Those of writing the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let lines = std::iter::once(Line::DeadAfter(self.dead_after))
            .chain(self.ops.iter().cloned().map(Line::Op))
            .chain(self.crashes.iter().copied().map(Line::Crash))
            .chain(self.receipts.iter().cloned().map(Line::Receipt))
            .chain(self.dead.iter().copied().map(Line::Dead));
        for line in lines {
            serde_json::to_writer(&mut file, &line)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// Those of reading the file, and `InvalidData` for a line of another shape.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut history = Self::default();
        for line in BufReader::new(File::open(path)?).lines() {
            match serde_json::from_str(&line?)? {
                Line::DeadAfter(limit) => history.dead_after = limit,
                Line::Op(op) => history.ops.push(op),
                Line::Crash(at) => history.crashes.push(at),
                Line::Receipt(receipt) => history.receipts.push(receipt),
                Line::Dead(id) => history.dead.push(id),
            }
        }
        Ok(history)
    }
}
