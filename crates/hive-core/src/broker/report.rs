//! What live views are told about mail. Bodies are cut: the views show a line, the store the rest.
//!
//! Events are made on the broker's thread, on the path of every message; so they are encoded
//! straight from borrowed fields, without a tree of values in between.

use std::borrow::Cow;

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

/// How much of a body an event shows.
const PREVIEW: usize = 400;
/// About what the other fields of an event take as JSON.
const FIELDS: usize = 128;

/// An event about `about` with these particulars.
pub(super) fn event(
    at: Timestamp,
    about: &str,
    kind: &'static str,
    data: &impl Serialize,
) -> Event {
    event_of(at, about, kind, data, 0)
}

/// The same, with `text` bytes of text in it.
fn event_of(
    at: Timestamp,
    about: &str,
    kind: &'static str,
    data: &impl Serialize,
    text: usize,
) -> Event {
    Event {
        at,
        about: about.to_owned(),
        kind: Cow::Borrowed(kind),
        data: EventData::encoded(data, FIELDS + text),
    }
}

/// What an event says of a message, kept while the message itself goes to the store.
pub(super) struct Stored {
    from: SenderLabel,
    to: Recipient,
    body: String,
    in_reply_to: Option<MessageId>,
    transient: bool,
}

impl Stored {
    pub(super) fn of(message: &NewMessage) -> Self {
        Self {
            from: message.from.clone(),
            to: message.to.clone(),
            body: text::shorten(&message.body, PREVIEW),
            in_reply_to: message.in_reply_to,
            transient: message.transient,
        }
    }

    pub(super) fn event(&self, at: Timestamp, message_id: MessageId) -> Event {
        #[derive(Serialize)]
        struct Data<'a> {
            message_id: MessageId,
            from: &'a SenderLabel,
            to: &'a Recipient,
            body: &'a str,
            in_reply_to: Option<MessageId>,
            transient: bool,
        }
        let data = Data {
            message_id,
            from: &self.from,
            to: &self.to,
            body: &self.body,
            in_reply_to: self.in_reply_to,
            transient: self.transient,
        };
        let text = self.body.len();
        event_of(at, self.to.as_str(), "message_stored", &data, text)
    }
}

pub(super) fn delivered(at: Timestamp, receive: &Receive, messages: &[Message]) -> Event {
    #[derive(Serialize)]
    struct Delivery {
        message_id: MessageId,
        delivery: u32,
    }
    #[derive(Serialize)]
    struct Data<'a> {
        turn: Option<&'a TurnId>,
        messages: Vec<Delivery>,
    }
    let deliveries = messages.iter().map(|message| Delivery {
        message_id: message.id,
        delivery: message.delivery,
    });
    let data = Data {
        turn: receive.turn.as_ref(),
        messages: deliveries.collect(),
    };
    event(at, receive.agent.as_str(), "messages_delivered", &data)
}

pub(super) fn turn_ended(
    at: Timestamp,
    agent: &AgentName,
    turn: &TurnId,
    closed: &TurnClosed,
) -> Event {
    #[derive(Serialize)]
    struct Data<'a> {
        turn: &'a TurnId,
        #[serde(flatten)]
        closed: &'a TurnClosed,
    }
    event(at, agent.as_str(), "turn_ended", &Data { turn, closed })
}

pub(super) fn settled(
    at: Timestamp,
    recipient: &Recipient,
    message_id: MessageId,
    state: MessageState,
) -> Event {
    #[derive(Serialize)]
    struct Data {
        message_id: MessageId,
        state: MessageState,
    }
    event(
        at,
        recipient.as_str(),
        "dead_letter_settled",
        &Data { message_id, state },
    )
}

pub(super) fn question_asked(at: Timestamp, id: QuestionId, question: &NewQuestion) -> Event {
    #[derive(Serialize)]
    struct Data<'a> {
        question_id: QuestionId,
        from: &'a SenderLabel,
        question: String,
    }
    let data = Data {
        question_id: id,
        from: &question.asker,
        question: text::shorten(&question.question, PREVIEW),
    };
    event(at, question.target.as_str(), "question_asked", &data)
}

pub(super) fn question_ended(at: Timestamp, row: &QuestionRow) -> Event {
    #[derive(Serialize)]
    struct Data<'a> {
        question_id: QuestionId,
        target: &'a str,
        answer: Option<String>,
    }
    let data = Data {
        question_id: row.question_id,
        target: &row.target,
        answer: row
            .answer
            .as_deref()
            .map(|answer| text::shorten(answer, PREVIEW)),
    };
    event(at, row.asker.as_str(), "question_answered", &data)
}
