//! Messages, leases and acks on SQLite.
//!
//! Every method checks before it writes, so that a refused one has nothing to undo in the database;
//! what it changed in the books is undone there. [`Group::run_checked`](super::Group::run_checked)
//! relies on that.

mod place;
mod receive;
mod row;
mod send;

use std::{collections::BTreeSet, time::Duration};

use hive_wire::{
    AgentName, MessageId, Recipient, ReqId, TurnId,
    agent::{
        InboxStatus, Message, MessageState, Receipt, RequeueReason, Sent, TurnClosed, TurnResult,
    },
};
use rusqlite::{OptionalExtension, params};

use super::{
    Tx,
    books::{Held, Inbox, OpenTurn},
    readers::{receipt_from, receipts},
    redo::Statement,
    turns::Outcome,
};
use crate::{Mail, NewMessage, Receive, Received, Refusal, mail::Verdict};
use place::Place;
pub(super) use row::checksum;

/// How long a sender's key stands for the same message.
pub(super) const KEY_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How many bytes of encoded bodies one receive returns at most: a line, less its framing.
const BATCH_BYTES: u32 = 900 * 1024;
/// What a message costs in a line besides its body.
pub(super) const ENVELOPE_BYTES: u32 = 512;

impl Mail for Tx<'_> {
    fn send(&mut self, message: NewMessage) -> Result<Sent, Refusal> {
        if let Some(first) = self.message_of_key(&message)? {
            return Ok(Sent {
                message_id: first,
                duplicate: true,
            });
        }
        let thread = self.thread_of(&message)?;
        if message.transient {
            return self.send_transient(message);
        }
        let depth = self.books.inbox(self.on_demand, message.to.as_str())?.depth;
        if message.bounded && depth >= self.limits.inbox_depth {
            return Err(Refusal::InboxFull {
                recipient: message.to.to_string(),
                depth,
            });
        }
        let id = self.books.take_message_id();
        self.insert_message(id, &message, thread)?;
        self.enqueue(message.to.as_str(), id)?;
        if let Some(key) = &message.key {
            self.change(
                Statement::Remember,
                &[
                    message.from.as_str().into(),
                    key.as_str().into(),
                    id.0.into(),
                    self.now.millis().into(),
                ],
            )?;
        }
        self.books
            .inbox_mut(self.on_demand, message.to.as_str())?
            .depth += 1;
        Ok(Sent {
            message_id: id,
            duplicate: false,
        })
    }

    fn receive(&mut self, receive: &Receive) -> Result<Received, Refusal> {
        let Some(turn) = &receive.turn else {
            let messages = self.take_without_turn(receive)?;
            return Ok(Received {
                messages,
                ..Received::default()
            });
        };
        let (open, displaced) = self.join_or_open(&receive.agent, turn)?;
        let mut received = Received {
            messages: Vec::new(),
            turn: Some(open.name.clone()),
            displaced,
        };
        if let Some(req) = &receive.req {
            received.messages = self.replay(&receive.agent, &open, req)?;
        }
        if received.messages.is_empty() {
            received.messages = self.lease(receive, &open)?;
        }
        if received.messages.is_empty() && !receive.parks {
            self.write_turn(&receive.agent, &open)?;
        }
        Ok(received)
    }

    fn confirm(&mut self, agent: &AgentName, turn: &TurnId, req: &ReqId) -> Result<u32, Refusal> {
        let Some(open) = self.open_turn_named(agent, turn)? else {
            return Ok(0);
        };
        let is_of_req = |held: &Held| held.req.as_ref() == Some(req);
        let durable = open.held.iter().filter(|held| is_of_req(held)).count();
        if durable > 0 {
            let batch = [agent.as_str().into(), req.as_str().into()];
            self.change(Statement::Confirm, &batch)?;
            self.change_open_turn(agent, |open| {
                let of_req = open.held.iter_mut().filter(|held| is_of_req(held));
                of_req.for_each(|held| held.confirmed = true);
            })?;
        }
        let transient = self.books.transients.confirm(agent.as_str(), req);
        Ok(count(durable) + transient)
    }

    fn ack_turn(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        ids: &[MessageId],
    ) -> Result<TurnClosed, Refusal> {
        let Some(open) = self.open_turn_named(agent, turn)? else {
            return Ok(self.closed_turn(agent, turn, Outcome::Acked)?);
        };
        let mut closed = TurnClosed {
            result: TurnResult::Acked,
            acked: 0,
            requeued: 0,
            dead: 0,
        };
        let ids: BTreeSet<MessageId> = ids.iter().copied().collect();
        let seq = self.books.take_turn_seq();
        for held in &open.held {
            let place = Place::leased(agent.as_str(), held.message);
            if held.confirmed || ids.contains(&held.message) {
                self.finish(&place, MessageState::Acked, held.deliveries, Some(seq))?;
                closed.acked += 1;
            } else {
                self.move_to(&place, MessageState::Stored, held.failures, None)?;
                closed.requeued += 1;
            }
        }
        closed.acked += self.books.transients.acked(agent.as_str(), &ids);
        self.end_turn(agent, &open, seq, Outcome::Acked, &closed)?;
        Ok(closed)
    }

    fn requeue(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> Result<TurnClosed, Refusal> {
        let Some(open) = self.open_turn_named(agent, turn)? else {
            return Ok(self.closed_turn(agent, turn, Outcome::Requeued)?);
        };
        Ok(self.give_back(agent, &open, Outcome::Requeued, reason.counts())?)
    }

    fn settle(&mut self, id: MessageId, verdict: Verdict) -> Result<MessageState, Refusal> {
        let Some((state, recipient)) = self.state_of(id)? else {
            return Err(Refusal::NotFound {
                what: "message",
                id: id.to_string(),
            });
        };
        if state != MessageState::Dead {
            return Err(Refusal::NotDead { id, state });
        }
        let place = Place {
            recipient: &recipient,
            state,
            message: id,
        };
        match verdict {
            Verdict::Redeliver => {
                self.books.inbox_mut(self.on_demand, &recipient)?.depth += 1;
                self.move_to(&place, MessageState::Stored, 0, None)?;
                Ok(MessageState::Stored)
            }
            Verdict::Discard => {
                self.discard(&place)?;
                Ok(MessageState::Discarded)
            }
        }
    }

    fn receipt(&mut self, id: MessageId) -> Result<Option<Receipt>, Refusal> {
        let mut receipt = self.conn()?.prepare_cached(receipts!("WHERE m.id = ?1"))?;
        Ok(receipt.query_row([id.0], receipt_from).optional()?)
    }

    fn inbox(&mut self, recipient: &Recipient) -> Result<InboxStatus, Refusal> {
        let Inbox { depth, open } = self
            .books
            .inbox(self.on_demand, recipient.as_str())?
            .clone();
        let transients = &self.books.transients;
        let held = open.as_ref().map_or(0, |open| count(open.held.len()));
        Ok(InboxStatus {
            unread: depth + transients.waiting(recipient.as_str()),
            inflight: held + transients.held(recipient.as_str()),
            turn: open.map(|open| open.name.clone()),
        })
    }
}

/// What came of trying to lease a message as it is stored.
#[derive(Debug)]
pub enum AtOnce {
    /// It is stored and leased.
    Leased(Sent, Received),
    /// It has to be sent and received the ordinary way.
    NotPossible(NewMessage),
}

/// Sending to somebody who waits.
impl Tx<'_> {
    /// [`Mail::send`] and [`Mail::receive`] in one, for a receive that waits on this inbox within
    /// its open turn while nothing else waits there: half the work of doing one after the other.
    ///
    /// # Errors
    /// Those of sending.
    pub fn lease_at_once(
        &mut self,
        message: NewMessage,
        receive: &Receive,
    ) -> Result<AtOnce, Refusal> {
        let agent = &receive.agent;
        let inbox = self.books.inbox(self.on_demand, agent.as_str())?;
        let open = inbox
            .open
            .clone()
            .filter(|open| Some(&open.name) == receive.turn.as_ref());
        let is_alone = inbox.depth == 0 && self.books.transients.waiting(agent.as_str()) == 0;
        let is_plain = message.key.is_none() && !message.transient;
        let (Some(open), true, true) = (open, is_alone, is_plain) else {
            return Ok(AtOnce::NotPossible(message));
        };
        let thread = self.thread_of(&message)?;
        let id = self.books.take_message_id();
        self.insert_message(id, &message, thread)?;
        self.enqueue_leased(agent.as_str(), id, &open, receive.req.as_ref())?;
        self.change_open_turn(agent, |open| {
            open.held.push(Held {
                message: id,
                deliveries: 1,
                failures: 0,
                req: receive.req.clone(),
                confirmed: false,
            });
        })?;
        let message = Message {
            id,
            from: message.from,
            to: message.to.to_string(),
            body: message.body,
            in_reply_to: message.in_reply_to,
            sent_at: self.now,
            delivery: 1,
        };
        let sent = Sent {
            message_id: id,
            duplicate: false,
        };
        let received = Received {
            messages: vec![message],
            turn: Some(open.name.clone()),
            displaced: None,
        };
        Ok(AtOnce::Leased(sent, received))
    }
}

/// Ending a turn.
impl Tx<'_> {
    /// Ends the open turn by giving back what it holds.
    fn give_back(
        &mut self,
        agent: &AgentName,
        open: &OpenTurn,
        outcome: Outcome,
        counts: bool,
    ) -> rusqlite::Result<TurnClosed> {
        let mut closed = TurnClosed {
            result: TurnResult::Requeued,
            acked: 0,
            requeued: 0,
            dead: 0,
        };
        let seq = self.books.take_turn_seq();
        for held in &open.held {
            let place = Place::leased(agent.as_str(), held.message);
            let failures = held.failures + u32::from(counts);
            if counts && failures >= self.limits.deliveries_before_dead {
                self.move_to(&place, MessageState::Dead, failures, Some(seq))?;
                closed.dead += 1;
            } else {
                self.move_to(&place, MessageState::Stored, failures, None)?;
                closed.requeued += 1;
            }
        }
        self.books.transients.given_back(agent.as_str());
        self.end_turn(agent, open, seq, outcome, &closed)?;
        Ok(closed)
    }

    /// What became of a transient message in an agent's inbox; none when it never was, is too long
    /// ago, or was lost with an earlier process. One that a failed turn held is discarded.
    pub fn transient_receipt(&self, agent: &AgentName, id: MessageId) -> Option<Receipt> {
        self.books.transients.receipt(agent.as_str(), id)
    }

    /// Marks messages of the operator's inbox as dealt with; says how many were waiting.
    ///
    /// # Errors
    /// Only those of SQLite: ids that are not waiting there are passed over.
    pub fn ack_operator_mail(&mut self, ids: &[MessageId]) -> Result<u32, Refusal> {
        let operator = Recipient::Operator;
        let mut acked = 0;
        for id in ids {
            let is_waiting = self
                .conn()?
                .prepare_cached(
                    "SELECT 1 FROM mail WHERE recipient = ?1 AND state = 0 AND message = ?2",
                )?
                .exists(params![operator.as_str(), id.0])?;
            if is_waiting {
                // In mind before its rows change: it is counted from them.
                let inbox = self.books.inbox_mut(self.on_demand, operator.as_str())?;
                inbox.depth = inbox.depth.saturating_sub(1);
                let place = Place::stored(operator.as_str(), *id);
                self.finish(&place, MessageState::Acked, 1, None)?;
                acked += 1;
            }
        }
        Ok(acked)
    }
}

/// A number of rows or bytes, which every limit keeps far below four billion.
pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
