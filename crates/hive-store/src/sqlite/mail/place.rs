//! Where an open message lies, and moving it: between states, or to the settled ones.

use hive_wire::{MessageId, ReqId, agent::MessageState};
use rusqlite::{OptionalExtension, params};

use crate::sqlite::{Tx, books::OpenTurn, readers::state_from, redo::Statement};

/// A row of `mail`, by its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) recipient: &'a str,
    pub(super) state: MessageState,
    pub(super) message: MessageId,
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
    pub(super) fn enqueue(&mut self, recipient: &str, message: MessageId) -> rusqlite::Result<()> {
        self.change(Statement::Enqueue, &[recipient.into(), message.0.into()])
    }

    /// A new message's place in the turn that waited for it.
    pub(super) fn enqueue_leased(
        &mut self,
        recipient: &str,
        message: MessageId,
        turn: &OpenTurn,
        req: Option<&ReqId>,
    ) -> rusqlite::Result<()> {
        self.change(
            Statement::EnqueueLeased,
            &[
                recipient.into(),
                message.0.into(),
                turn.name.as_str().into(),
                turn.opened_at.millis().into(),
                req.map(ReqId::as_str).into(),
            ],
        )
    }

    /// To another open state. Back among the stored it lies where it was, because they are in the
    /// order of ids. A dead letter names the turn that it failed in: it is part of the receipt.
    pub(super) fn move_to(
        &mut self,
        from: &Place<'_>,
        to: MessageState,
        failures: u32,
        turn: Option<i64>,
    ) -> rusqlite::Result<()> {
        self.change(
            Statement::Move,
            &[
                from.recipient.into(),
                (from.state as i64).into(),
                from.message.0.into(),
                (to as i64).into(),
                failures.into(),
                turn.into(),
            ],
        )
    }

    /// Out of the open ones: the end of a message's way.
    pub(super) fn finish(
        &mut self,
        from: &Place<'_>,
        state: MessageState,
        deliveries: u32,
        turn: Option<i64>,
    ) -> rusqlite::Result<()> {
        self.change(
            Statement::Leave,
            &[
                from.recipient.into(),
                (from.state as i64).into(),
                from.message.0.into(),
            ],
        )?;
        self.change(
            Statement::Receipt,
            &[
                from.message.0.into(),
                (state as i64).into(),
                deliveries.into(),
                turn.into(),
                self.now.millis().into(),
            ],
        )
    }

    /// Throws a dead letter away; its receipt tells of its deliveries and its last turn.
    pub(super) fn discard(&mut self, dead: &Place<'_>) -> rusqlite::Result<()> {
        let (deliveries, turn) = self
            .conn()?
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
        self.conn()?
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
