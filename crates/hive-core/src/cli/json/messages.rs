//! The shapes of `send`, `inbox`, `receipt`, `history`, `dead`, `redeliver` and `discard`.

use hive_wire::{MessageId, Timestamp, agent, host};
use serde::Serialize;

use super::words::message_state;

/// A message that was sent: `send`.
#[derive(Serialize)]
pub(in crate::cli) struct Sent {
    id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    duplicate: bool,
}

impl From<&agent::Sent> for Sent {
    fn from(sent: &agent::Sent) -> Self {
        Self {
            id: sent.message_id.to_string(),
            duplicate: sent.duplicate,
        }
    }
}

/// The operator's mail: `inbox`. `next` is there when more waits than was asked for.
#[derive(Serialize)]
pub(in crate::cli) struct InboxDocument<'a> {
    messages: Vec<Mail<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct Mail<'a> {
    id: String,
    from: &'a str,
    body: &'a str,
    in_reply_to: Option<String>,
    sent_at: Timestamp,
}

impl<'a> InboxDocument<'a> {
    /// The view of `messages`; `next` is the position to go on after.
    pub(in crate::cli) fn new(messages: &'a [agent::Message], next: Option<MessageId>) -> Self {
        let view = |message: &'a agent::Message| Mail {
            id: message.id.to_string(),
            from: message.from.as_str(),
            body: &message.body,
            in_reply_to: message.in_reply_to.map(|id| id.to_string()),
            sent_at: message.sent_at,
        };
        Self {
            messages: messages.iter().map(view).collect(),
            next: next.map(|id| id.to_string()),
        }
    }
}

/// How many messages were marked as dealt with: `inbox --ack`.
#[derive(Serialize)]
pub(in crate::cli) struct Acked {
    pub(in crate::cli) acked: u32,
}

/// What became of a message: `receipt`.
#[derive(Serialize)]
pub(in crate::cli) struct Receipt<'a> {
    id: String,
    from: &'a str,
    to: &'a str,
    state: &'static str,
    deliveries: u32,
    turn: Option<&'a str>,
    sent_at: Timestamp,
    acked_at: Option<Timestamp>,
}

impl<'a> From<&'a agent::Receipt> for Receipt<'a> {
    fn from(receipt: &'a agent::Receipt) -> Self {
        Self {
            id: receipt.message_id.to_string(),
            from: receipt.from.as_str(),
            to: &receipt.to,
            state: message_state(receipt.state),
            deliveries: receipt.deliveries,
            turn: receipt.turn.as_ref().map(hive_wire::TurnId::as_str),
            sent_at: receipt.sent_at,
            acked_at: receipt.acked_at,
        }
    }
}

/// Messages with what became of them: `history`, which has a `next`, and `dead`.
#[derive(Serialize)]
pub(in crate::cli) struct MessageList<'a> {
    messages: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Option<String>>,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    receipt: Receipt<'a>,
    body: &'a str,
    in_reply_to: Option<String>,
}

impl<'a> MessageList<'a> {
    /// A page, and where the next one begins.
    pub(in crate::cli) fn page(rows: &'a [host::HistoryRow], next: Option<MessageId>) -> Self {
        Self {
            next: Some(next.map(|id| id.to_string())),
            ..Self::whole(rows)
        }
    }

    /// All there is.
    pub(in crate::cli) fn whole(rows: &'a [host::HistoryRow]) -> Self {
        let view = |row: &'a host::HistoryRow| Row {
            receipt: (&row.receipt).into(),
            body: &row.body,
            in_reply_to: row.in_reply_to.map(|id| id.to_string()),
        };
        Self {
            messages: rows.iter().map(view).collect(),
            next: None,
        }
    }
}

/// A dead letter that is dealt with: `redeliver`, `discard`.
#[derive(Serialize)]
pub(in crate::cli) struct Settled {
    id: String,
    state: &'static str,
}

impl Settled {
    /// The message and where it stands now.
    pub(in crate::cli) fn new(id: MessageId, settled: &host::Settled) -> Self {
        Self {
            id: id.to_string(),
            state: message_state(settled.state),
        }
    }
}
