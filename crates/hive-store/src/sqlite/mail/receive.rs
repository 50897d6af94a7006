//! Handing messages over: to a turn, or acked at once.

use std::sync::Arc;

use hive_wire::{
    AgentName, MessageId, ReqId, TurnId,
    agent::{Message, MessageState},
};
use rusqlite::params;

use super::{BATCH_BYTES, ENVELOPE_BYTES, count, place::Place, row::message_from};
use crate::{
    Receive, Refusal,
    sqlite::{
        Tx,
        books::{Held, OpenTurn},
        redo::Statement,
        turns::Outcome,
    },
};

/// The most durable messages that one turn may hold when it asks for more.
const MAX_HELD: usize = 4_096;

/// A waiting message, numbered for its next delivery.
struct Waiting {
    message: Message,
    failures: u32,
}

/// Refuses a turn that holds more than it could ever deal with: ending it is one operation.
fn check_room(open: &OpenTurn) -> Result<(), Refusal> {
    if open.held.len() >= MAX_HELD {
        return Err(Refusal::TooMany {
            what: "messages in one turn",
            limit: count(MAX_HELD),
        });
    }
    Ok(())
}

impl Tx<'_> {
    /// The turn that `name` stands for, opened if it is new, and the one it displaced.
    pub(super) fn join_or_open(
        &mut self,
        agent: &AgentName,
        name: &TurnId,
    ) -> Result<(Arc<OpenTurn>, Option<TurnId>), Refusal> {
        if let Some(open) = self.open_turn_named(agent, name)? {
            return Ok((open, None));
        }
        if self.has_ended(agent, name)? {
            return Err(Refusal::TurnEnded(name.to_string()));
        }
        let mut displaced = None;
        if let Some(open) = self.open_turn(agent)? {
            displaced = Some(open.name.clone());
            self.give_back(agent, &open, Outcome::Displaced, true)?;
        }
        Ok((self.open_in_mind(agent, name)?, displaced))
    }

    pub(super) fn replay(
        &self,
        agent: &AgentName,
        open: &OpenTurn,
        req: &ReqId,
    ) -> Result<Vec<Message>, Refusal> {
        let mut messages = self.books.transients.replay(agent.as_str(), req);
        if !open.held.is_empty() {
            let mut held = self.conn()?.prepare_cached(
                "SELECT l.message, m.sender, m.recipient, m.body, m.in_reply_to, m.sent_at, m.size, \
                 m.checksum, l.deliveries FROM mail l LEFT JOIN messages m ON m.id = l.message \
                 WHERE l.recipient = ?1 AND l.state = 1 AND l.req = ?2 ORDER BY l.message",
            )?;
            let mut rows = held.query(params![agent.as_str(), req.as_str()])?;
            while let Some(row) = rows.next()? {
                messages.push(message_from(row, agent, 0)?);
            }
        }
        Ok(messages)
    }

    /// Leases the oldest waiting messages to the open turn.
    pub(super) fn lease(
        &mut self,
        receive: &Receive,
        open: &OpenTurn,
    ) -> Result<Vec<Message>, Refusal> {
        let agent = &receive.agent;
        check_room(open)?;
        let (transient, bytes) =
            self.books
                .transients
                .fitting(agent.as_str(), receive.max, BATCH_BYTES);
        let durable = self.oldest_waiting(agent, receive.max - transient, bytes)?;
        if transient == 0 && durable.is_empty() {
            return Ok(Vec::new());
        }
        if durable.is_empty() {
            self.write_turn(agent, open)?;
        }
        self.hold(receive, open, &durable)?;
        let mut messages =
            self.books
                .transients
                .take(agent.as_str(), transient, true, receive.req.as_ref());
        messages.extend(durable.into_iter().map(|waiting| waiting.message));
        Ok(messages)
    }

    /// Leases waiting messages to the open turn.
    fn hold(
        &mut self,
        receive: &Receive,
        open: &OpenTurn,
        waiting: &[Waiting],
    ) -> rusqlite::Result<()> {
        let agent = &receive.agent;
        for Waiting { message, .. } in waiting {
            self.change(
                Statement::Lease,
                &[
                    agent.as_str().into(),
                    message.id.0.into(),
                    message.delivery.into(),
                    open.name.as_str().into(),
                    open.opened_at.millis().into(),
                    receive.req.as_ref().map(ReqId::as_str).into(),
                ],
            )?;
        }
        self.took(agent, waiting.len())?;
        let held = waiting.iter().map(|waiting| Held {
            message: waiting.message.id,
            deliveries: waiting.message.delivery,
            failures: waiting.failures,
            req: receive.req.clone(),
            confirmed: false,
        });
        self.change_open_turn(agent, |open| open.held.extend(held))
    }

    /// Acks and returns the oldest waiting messages.
    pub(super) fn take_without_turn(&mut self, receive: &Receive) -> Result<Vec<Message>, Refusal> {
        let agent = &receive.agent;
        let (transient, bytes) =
            self.books
                .transients
                .fitting(agent.as_str(), receive.max, BATCH_BYTES);
        let durable = self.oldest_waiting(agent, receive.max - transient, bytes)?;
        for Waiting { message, .. } in &durable {
            let waiting = Place::stored(agent.as_str(), message.id);
            self.finish(&waiting, MessageState::Acked, message.delivery, None)?;
        }
        self.took(agent, durable.len())?;
        let mut messages = self
            .books
            .transients
            .take(agent.as_str(), transient, false, None);
        messages.extend(durable.into_iter().map(|waiting| waiting.message));
        Ok(messages)
    }

    /// The oldest waiting messages that fit into one line of which `taken` bytes are taken,
    /// numbered for their next delivery.
    fn oldest_waiting(
        &mut self,
        agent: &AgentName,
        max: u32,
        taken: u32,
    ) -> Result<Vec<Waiting>, Refusal> {
        if max == 0 || self.books.inbox(self.on_demand, agent.as_str())?.depth == 0 {
            return Ok(Vec::new());
        }
        loop {
            let (messages, damaged) = self.read_waiting(agent, max, taken)?;
            self.bury(agent, &damaged)?;
            // What was buried must not hide what waits behind it.
            if damaged.is_empty() || !messages.is_empty() {
                return Ok(messages);
            }
        }
    }

    /// The same, and the damaged ones among them.
    fn read_waiting(
        &self,
        agent: &AgentName,
        max: u32,
        taken: u32,
    ) -> Result<(Vec<Waiting>, Vec<MessageId>), Refusal> {
        let mut waiting = self.conn()?.prepare_cached(
            "SELECT l.message, m.sender, m.recipient, m.body, m.in_reply_to, m.sent_at, m.size, \
             m.checksum, l.deliveries, l.failures FROM mail l \
             LEFT JOIN messages m ON m.id = l.message \
             WHERE l.recipient = ?1 AND l.state = 0 ORDER BY l.message LIMIT ?2",
        )?;
        let mut rows = waiting.query(params![agent.as_str(), max])?;
        let (mut messages, mut damaged) = (Vec::new(), Vec::new());
        let mut bytes = taken;
        while let Some(row) = rows.next()? {
            let size: u32 = row.get(6).unwrap_or(0);
            bytes = bytes.saturating_add(size).saturating_add(ENVELOPE_BYTES);
            if bytes > BATCH_BYTES && (taken > 0 || !messages.is_empty()) {
                break;
            }
            match message_from(row, agent, 1) {
                Ok(message) => messages.push(Waiting {
                    message,
                    failures: row.get(9)?,
                }),
                Err(Refusal::Damaged(id)) => damaged.push(id),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok((messages, damaged))
    }

    /// A message whose bytes changed on disk must not be handed over, and must not block those
    /// behind it: it becomes a dead letter, where the operator sees it.
    fn bury(&mut self, agent: &AgentName, damaged: &[MessageId]) -> rusqlite::Result<()> {
        for id in damaged {
            tracing::error!(message = id.0, %agent, "a message is damaged on disk: dead letter");
            self.move_to(
                &Place::stored(agent.as_str(), *id),
                MessageState::Dead,
                0,
                None,
            )?;
        }
        if damaged.is_empty() {
            return Ok(());
        }
        self.took(agent, damaged.len())
    }

    pub(super) fn took(&mut self, agent: &AgentName, taken: usize) -> rusqlite::Result<()> {
        let inbox = self.books.inbox_mut(self.on_demand, agent.as_str())?;
        inbox.depth = inbox.depth.saturating_sub(count(taken));
        Ok(())
    }
}
