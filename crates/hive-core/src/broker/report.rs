//! What live views are told about mail. Bodies are cut: the views show a line, the store the rest.
//! Events are kept on disk, so they say nothing of the body of a transient message.
//!
//! Events are made on the broker's thread, on the path of every message; so they only take what
//! they are about, and the log's thread encodes it.

use std::{borrow::Cow, fmt};

use hive_store::{
    NewMessage, Receive,
    event_log::{Event, EventData},
    sqlite::NewQuestion,
};
use hive_wire::{
    AgentName, MessageId, QuestionId, Recipient, SenderLabel, Timestamp, TurnId,
    agent::{Message, MessageState, TurnClosed},
    host::QuestionRow,
    text,
};
use serde::Serialize;
use serde_json::json;

/// How much of a body an event shows.
const PREVIEW: usize = 400;
/// About what the other fields of an event take as JSON.
const FIELDS: usize = 128;
/// About what each message of a delivery takes as JSON.
const DELIVERY: usize = 48;

/// An event about `about` with these particulars.
pub(super) fn event(
    at: Timestamp,
    about: &str,
    kind: &'static str,
    data: impl Into<EventData>,
) -> Event {
    Event {
        at,
        about: about.to_owned(),
        kind: Cow::Borrowed(kind),
        data: data.into(),
    }
}

/// Particulars with `text` bytes of text in them.
fn fields(data: impl Serialize + fmt::Debug + Send + Sync + 'static, text: usize) -> EventData {
    EventData::plain(data, FIELDS + text)
}

/// What an event says of a message, kept while the message itself goes to the store.
pub(super) struct Stored {
    from: SenderLabel,
    to: Recipient,
    /// None of a transient message.
    body: Option<String>,
    in_reply_to: Option<MessageId>,
    transient: bool,
}

impl Stored {
    pub(super) fn of(message: &NewMessage) -> Self {
        Self {
            from: message.from.clone(),
            to: message.to.clone(),
            body: (!message.transient).then(|| text::shorten(&message.body, PREVIEW)),
            in_reply_to: message.in_reply_to,
            transient: message.transient,
        }
    }

    pub(super) fn event(self, at: Timestamp, message_id: MessageId) -> Event {
        #[derive(Debug, Serialize)]
        struct Data {
            message_id: MessageId,
            from: SenderLabel,
            to: Recipient,
            #[serde(skip_serializing_if = "Option::is_none")]
            body: Option<String>,
            in_reply_to: Option<MessageId>,
            transient: bool,
        }
        let about = self.to.clone();
        let text = self.body.as_ref().map_or(0, String::len);
        let data = Data {
            message_id,
            from: self.from,
            to: self.to,
            body: self.body,
            in_reply_to: self.in_reply_to,
            transient: self.transient,
        };
        event(at, about.as_str(), "message_stored", fields(data, text))
    }
}

pub(super) fn delivered(at: Timestamp, receive: &Receive, messages: &[Message]) -> Event {
    #[derive(Debug, Serialize)]
    struct Delivery {
        message_id: MessageId,
        delivery: u32,
    }
    #[derive(Debug, Serialize)]
    struct Data {
        turn: Option<TurnId>,
        messages: Vec<Delivery>,
    }
    let deliveries = messages.iter().map(|message| Delivery {
        message_id: message.id,
        delivery: message.delivery,
    });
    let data = Data {
        turn: receive.turn.clone(),
        messages: deliveries.collect(),
    };
    let text = DELIVERY * data.messages.len();
    let data = fields(data, text);
    event(at, receive.agent.as_str(), "messages_delivered", data)
}

pub(super) fn turn_ended(
    at: Timestamp,
    agent: &AgentName,
    turn: &TurnId,
    closed: &TurnClosed,
) -> Event {
    #[derive(Debug, Serialize)]
    struct Data {
        turn: TurnId,
        #[serde(flatten)]
        closed: TurnClosed,
    }
    let data = Data {
        turn: turn.clone(),
        closed: closed.clone(),
    };
    event(at, agent.as_str(), "turn_ended", fields(data, 0))
}

pub(super) fn settled(
    at: Timestamp,
    recipient: &Recipient,
    message_id: MessageId,
    state: MessageState,
) -> Event {
    let data = json!({"message_id": message_id, "state": state});
    event(at, recipient.as_str(), "dead_letter_settled", data)
}

pub(super) fn question_asked(at: Timestamp, id: QuestionId, question: &NewQuestion) -> Event {
    let data = json!({
        "question_id": id,
        "from": question.asker,
        "question": text::shorten(&question.question, PREVIEW),
    });
    event(at, question.target.as_str(), "question_asked", data)
}

pub(super) fn question_ended(at: Timestamp, row: &QuestionRow) -> Event {
    let answer = row.answer.as_deref();
    let data = json!({
        "question_id": row.question_id,
        "target": row.target,
        "answer": answer.map(|answer| text::shorten(answer, PREVIEW)),
    });
    event(at, row.asker.as_str(), "question_answered", data)
}
