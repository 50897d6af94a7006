//! Where an open message lies, and moving it: between states, or to the settled ones.

use hive_wire::{MessageId, ReqId, agent::MessageState};
use rusqlite::{OptionalExtension, params};

use crate::sqlite::{Tx, readers::state_from};

/// A row of `mail`, by its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) recipient: &'a str,
    pub(super) state: MessageState,
    pub(super) message: MessageId,
}

/// A leased message on its way out of its turn.
pub(super) struct Held {
    pub(super) message: MessageId,
    pub(super) confirmed: bool,
    pub(super) deliveries: u32,
    pub(super) failures: u32,
}

impl<'a> Place<'a> {
    pub(super) fn stored(recipient: &'a str, message: MessageId) -> Self {
        Self {
            recipient,
            state: MessageState::Stored,
            message,
        }
    }

    pub(super) fn leased(recipient: &'a str, message: MessageId) -> Self {
        Self {
            recipient,
            state: MessageState::Leased,
            message,
        }
    }
}

impl Tx<'_> {
    /// A new message's place in its inbox.
    pub(super) fn enqueue(&self, recipient: &str, message: MessageId) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("INSERT INTO mail VALUES (?1, 0, ?2, 0, 0, NULL, NULL, 0)")?
            .execute(params![recipient, message.0])
            .map(|_| ())
    }

    /// A new message's place in the turn that waited for it.
    pub(super) fn enqueue_leased(
        &self,
        recipient: &str,
        message: MessageId,
        turn: i64,
        req: Option<&ReqId>,
    ) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("INSERT INTO mail VALUES (?1, 1, ?2, 1, 0, ?3, ?4, 0)")?
            .execute(params![recipient, message.0, turn, req.map(ReqId::as_str)])
            .map(|_| ())
    }

    /// What the open turn of this agent holds.
    pub(super) fn held(&self, agent: &str) -> rusqlite::Result<Vec<Held>> {
        self.conn
            .prepare_cached(
                "SELECT message, confirmed, deliveries, failures FROM mail \
                 WHERE recipient = ?1 AND state = 1 ORDER BY message",
            )?
            .query_map([agent], |row| {
                Ok(Held {
                    message: MessageId(row.get(0)?),
                    confirmed: row.get(1)?,
                    deliveries: row.get(2)?,
                    failures: row.get(3)?,
                })
            })?
            .collect()
    }

    /// To another open state. Back among the stored it lies where it was, because they are in the
    /// order of ids. A dead letter keeps its turn: it is part of the receipt.
    pub(super) fn move_to(
        &self,
        from: &Place<'_>,
        to: MessageState,
        failures: u32,
    ) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE mail SET state = ?4, failures = ?5, req = NULL, confirmed = 0, \
                 turn = CASE WHEN ?4 = 3 THEN turn END \
                 WHERE recipient = ?1 AND state = ?2 AND message = ?3",
            )?
            .execute(params![
                from.recipient,
                from.state as i64,
                from.message.0,
                to as i64,
                failures
            ])
            .map(|_| ())
    }

    /// Out of the open ones: the end of a message's way.
    pub(super) fn finish(
        &self,
        from: &Place<'_>,
        state: MessageState,
        deliveries: u32,
        turn: Option<i64>,
    ) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached(
                "DELETE FROM mail WHERE recipient = ?1 AND state = ?2 AND message = ?3",
            )?
            .execute(params![from.recipient, from.state as i64, from.message.0])?;
        self.conn
            .prepare_cached("INSERT INTO receipts VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                from.message.0,
                state as i64,
                deliveries,
                turn,
                self.now.millis()
            ])
            .map(|_| ())
    }

    /// Throws a dead letter away; its receipt tells of its deliveries and its last turn.
    pub(super) fn discard(&self, dead: &Place<'_>) -> rusqlite::Result<()> {
        let (deliveries, turn) = self
            .conn
            .prepare_cached(
                "SELECT deliveries, turn FROM mail \
                 WHERE recipient = ?1 AND state = ?2 AND message = ?3",
            )?
            .query_row(
                params![dead.recipient, dead.state as i64, dead.message.0],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
        self.finish(dead, MessageState::Discarded, deliveries, turn)
    }

    /// Where a message stands, and whose it is.
    pub(super) fn state_of(
        &self,
        message: MessageId,
    ) -> rusqlite::Result<Option<(MessageState, String)>> {
        self.conn
            .prepare_cached(
                "SELECT coalesce(r.state, l.state), m.recipient FROM messages m \
                 LEFT JOIN receipts r ON r.message = m.id \
                 LEFT JOIN mail l ON l.recipient = m.recipient AND l.state IN (0, 1, 3) \
                   AND l.message = m.id WHERE m.id = ?1",
            )?
            .query_row([message.0], |row| {
                Ok((state_from(row.get(0)?), row.get(1)?))
            })
            .optional()
    }
}
