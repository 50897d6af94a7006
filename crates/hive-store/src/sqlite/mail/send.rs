//! Storing a message: what it belongs to, and its row.

use hive_wire::{
    MessageId,
    agent::{Message, Sent},
    text,
};
use rusqlite::{OptionalExtension, params};

use super::{KEY_LIFE, count, row::checksum};
use crate::{
    NewMessage, Refusal,
    sqlite::{Tx, redo::Statement, transient::MAX_WAITING},
};

impl Tx<'_> {
    pub(super) fn message_of_key(
        &self,
        message: &NewMessage,
    ) -> Result<Option<MessageId>, Refusal> {
        let Some(key) = &message.key else {
            return Ok(None);
        };
        let oldest = self.now.minus(KEY_LIFE).millis();
        let found = self
            .conn()?
            .prepare_cached(
                "SELECT message FROM send_keys WHERE sender = ?1 AND key = ?2 AND used_at >= ?3",
            )?
            .query_row(
                params![message.from.as_str(), key.as_str(), oldest],
                |row| row.get(0),
            )
            .optional()?;
        Ok(found.map(MessageId))
    }

    /// The first message of the thread that this one joins.
    pub(super) fn thread_of(&self, message: &NewMessage) -> Result<Option<i64>, Refusal> {
        let Some(parent) = message.in_reply_to else {
            return Ok(None);
        };
        if parent.is_transient() {
            return Ok(None);
        }
        if parent > self.books.last_message_id() || parent.0 == 0 {
            return Err(Refusal::NotFound {
                what: "message",
                id: parent.to_string(),
            });
        }
        let row = self
            .conn()?
            .prepare_cached("SELECT sender, recipient, thread FROM messages WHERE id = ?1")?
            .query_row([parent.0], |row| {
                let party = [row.get::<_, String>(0)?, row.get(1)?];
                Ok((party, row.get::<_, Option<i64>>(2)?))
            })
            .optional()?;
        match row {
            // It has passed its retention: the thread goes on under its id.
            None => Ok(Some(parent.0)),
            Some((party, thread)) if party.iter().any(|name| name == message.from.as_str()) => {
                Ok(Some(thread.unwrap_or(parent.0)))
            }
            Some(_) => Err(Refusal::NotYourThread(parent)),
        }
    }

    pub(super) fn insert_message(
        &mut self,
        id: MessageId,
        message: &NewMessage,
        thread: Option<i64>,
    ) -> rusqlite::Result<()> {
        let (from, to) = (message.from.as_str(), message.to.as_str());
        self.change(
            Statement::Store,
            &[
                id.0.into(),
                from.into(),
                to.into(),
                message.body.as_str().into(),
                message.in_reply_to.map(|id| id.0).into(),
                thread.into(),
                self.now.millis().into(),
                count(text::encoded_length(&message.body)).into(),
                checksum(id, from, to, &message.body, message.in_reply_to, self.now).into(),
            ],
        )
    }

    pub(super) fn send_transient(&mut self, message: NewMessage) -> Result<Sent, Refusal> {
        let to = message.to.to_string();
        if self.books.transients.is_full(&to) {
            return Err(Refusal::InboxFull {
                recipient: to,
                depth: MAX_WAITING,
            });
        }
        let id = self.books.transients.take_id();
        let message = Message {
            id,
            from: message.from,
            to: to.clone(),
            body: message.body,
            in_reply_to: message.in_reply_to,
            sent_at: self.now,
            delivery: 0,
        };
        self.books.transients.push(&to, message);
        Ok(Sent {
            message_id: id,
            duplicate: false,
        })
    }
}
