//! What live views are told about mail. Bodies are cut: the views show a line, the store the rest.

use std::borrow::Cow;

use hive_store::{NewMessage, Receive, event_log::Event, sqlite::NewQuestion};
use hive_wire::{
    AgentName, MessageId, QuestionId, Recipient, Timestamp, TurnId,
    agent::{Message, MessageState, TurnClosed},
    host::QuestionRow,
    text,
};
use serde_json::{Value, json};

use super::Desk;

/// How much of a body an event shows.
const PREVIEW: usize = 400;

/// An event about a message that has no id yet.
pub(super) struct Stored(Event, Value);

impl Stored {
    pub(super) fn with_id(mut self, id: MessageId) -> Event {
        self.1["message_id"] = json!(id);
        self.0.data = self.1.into();
        self.0
    }
}

pub(super) fn event(at: Timestamp, about: &str, kind: &'static str, data: Value) -> Event {
    Event {
        at,
        about: about.to_owned(),
        kind: Cow::Borrowed(kind),
        data: data.into(),
    }
}

pub(super) fn stored(at: Timestamp, message: &NewMessage) -> Stored {
    let data = json!({
        "message_id": Value::Null,
        "from": message.from,
        "to": message.to,
        "body": text::shorten(&message.body, PREVIEW),
        "in_reply_to": message.in_reply_to,
        "transient": message.transient,
    });
    Stored(
        event(at, message.to.as_str(), "message_stored", Value::Null),
        data,
    )
}

pub(super) fn leased(desk: &mut Desk<'_>, receive: &Receive, messages: &[Message]) {
    if messages.is_empty() {
        return;
    }
    let ids: Vec<Value> = messages
        .iter()
        .map(|message| json!({"message_id": message.id, "delivery": message.delivery}))
        .collect();
    let data = json!({"turn": receive.turn, "messages": ids});
    let event = event(desk.now, receive.agent.as_str(), "messages_delivered", data);
    desk.report(event);
}

pub(super) fn turn_ended(
    at: Timestamp,
    agent: &AgentName,
    turn: &TurnId,
    closed: &TurnClosed,
) -> Event {
    let data = json!({
        "turn": turn,
        "result": closed.result,
        "acked": closed.acked,
        "requeued": closed.requeued,
        "dead": closed.dead,
    });
    event(at, agent.as_str(), "turn_ended", data)
}

pub(super) fn settled(
    at: Timestamp,
    recipient: &Recipient,
    id: MessageId,
    state: MessageState,
) -> Event {
    event(
        at,
        recipient.as_str(),
        "dead_letter_settled",
        json!({"message_id": id, "state": state}),
    )
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
    let data = json!({
        "question_id": row.question_id,
        "target": row.target,
        "answer": row.answer.as_deref().map(|answer| text::shorten(answer, PREVIEW)),
    });
    event(at, row.asker.as_str(), "question_answered", data)
}
