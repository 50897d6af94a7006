//! Messages, leases and acks on SQLite.
//!
//! Every method checks before it writes. Whatever an operation did before it was refused is undone
//! with its savepoint, in the database and in the books.

use std::{collections::BTreeSet, time::Duration};

use hive_wire::{
    AgentName, MessageId, Recipient, ReqId, Timestamp, TurnId,
    agent::{
        InboxStatus, Message, MessageState, Receipt, RequeueReason, Sent, TurnClosed, TurnResult,
    },
    text,
};
use rusqlite::{OptionalExtension, Row, params};

use super::{
    Tx,
    books::OpenTurn,
    readers::{receipt_from, receipts, state_from},
    transient::MAX_WAITING,
    turns::Outcome,
};
use crate::{Mail, NewMessage, Receive, Received, Refusal, mail::Verdict};

/// How long a sender's key stands for the same message.
pub(super) const KEY_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How many bytes of encoded bodies one receive returns at most: a line, less its framing.
const BATCH_BYTES: u32 = 900 * 1024;
/// What a message costs in a line besides its body.
pub(super) const ENVELOPE_BYTES: u32 = 512;

/// A leased message on its way out of its turn.
struct HeldRow {
    id: MessageId,
    confirmed: bool,
    failures: u32,
}

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
        let depth = self.books.inbox(self.conn, message.to.as_str())?.depth;
        if message.bounded && depth >= self.limits.inbox_depth {
            return Err(Refusal::InboxFull {
                recipient: message.to.to_string(),
                depth,
            });
        }
        let id = self.books.take_message_id();
        self.insert_message(id, &message, thread)?;
        if let Some(key) = &message.key {
            self.conn
                .prepare_cached("INSERT OR REPLACE INTO send_keys VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![
                    message.from.as_str(),
                    key.as_str(),
                    id.0,
                    self.now.millis()
                ])?;
        }
        self.books.inbox_mut(self.conn, message.to.as_str())?.depth += 1;
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
        let (mut open, displaced) = self.join_or_open(&receive.agent, turn)?;
        let mut received = Received {
            messages: Vec::new(),
            turn: Some(open.name.clone()),
            displaced,
        };
        if let Some(req) = &receive.req {
            received.messages = self.replay(&receive.agent, &open, req)?;
        }
        if received.messages.is_empty() {
            received.messages = self.lease(receive, &mut open)?;
        }
        if received.messages.is_empty() && !receive.parks {
            self.turn_row(&receive.agent, &mut open)?;
        }
        Ok(received)
    }

    fn confirm(&mut self, agent: &AgentName, turn: &TurnId, req: &ReqId) -> Result<u32, Refusal> {
        let Some(open) = self.open_turn_named(agent, turn)? else {
            return Ok(0);
        };
        let durable = match open.seq {
            None => 0,
            Some(seq) => self
                .conn
                .prepare_cached(
                    "UPDATE mail SET confirmed = 1 WHERE turn = ?1 AND state = 1 AND req = ?2",
                )?
                .execute(params![seq, req.as_str()])?,
        };
        let transient = self.books.transients.confirm(agent.as_str(), req);
        Ok(count(durable) + transient)
    }

    fn ack_turn(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        ids: &[MessageId],
    ) -> Result<TurnClosed, Refusal> {
        let Some(mut open) = self.open_turn_named(agent, turn)? else {
            return Ok(self.closed_turn(agent, turn, Outcome::Acked)?);
        };
        let seq = self.turn_row(agent, &mut open)?;
        let mut closed = TurnClosed {
            result: TurnResult::Acked,
            acked: 0,
            requeued: 0,
            dead: 0,
        };
        let ids: BTreeSet<MessageId> = ids.iter().copied().collect();
        for row in self.held_rows(seq)? {
            if row.confirmed || ids.contains(&row.id) {
                self.settle_row(row.id, MessageState::Acked)?;
                closed.acked += 1;
            } else {
                self.put_back(row.id, row.failures)?;
                closed.requeued += 1;
            }
        }
        closed.acked += self.books.transients.end(agent.as_str(), &ids);
        self.end_turn(agent, seq, Outcome::Acked, &closed)?;
        self.books.inbox_mut(self.conn, agent.as_str())?.depth += closed.requeued;
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
        Ok(self.give_back(agent, open, Outcome::Requeued, reason.counts())?)
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
        match verdict {
            Verdict::Redeliver => {
                self.books.inbox_mut(self.conn, &recipient)?.depth += 1;
                self.put_back(id, 0)?;
                Ok(MessageState::Stored)
            }
            Verdict::Discard => {
                self.settle_row(id, MessageState::Discarded)?;
                Ok(MessageState::Discarded)
            }
        }
    }

    fn receipt(&mut self, id: MessageId) -> Result<Option<Receipt>, Refusal> {
        let mut receipt = self.conn.prepare_cached(receipts!("WHERE m.id = ?1"))?;
        Ok(receipt.query_row([id.0], receipt_from).optional()?)
    }

    fn inbox(&mut self, recipient: &Recipient) -> Result<InboxStatus, Refusal> {
        let inbox = self.books.inbox(self.conn, recipient.as_str())?.clone();
        let transients = &self.books.transients;
        let mut inflight = transients.held(recipient.as_str());
        if let Some(seq) = inbox.open.as_ref().and_then(|open| open.seq) {
            inflight += self
                .conn
                .prepare_cached("SELECT count(*) FROM mail WHERE turn = ?1 AND state = 1")?
                .query_row([seq], |row| row.get::<_, u32>(0))?;
        }
        let waiting = transients.waiting(recipient.as_str());
        Ok(InboxStatus {
            unread: inbox.depth + waiting,
            inflight,
            turn: inbox.open.map(|open| open.name),
        })
    }
}

/// Sending.
impl Tx<'_> {
    fn message_of_key(&self, message: &NewMessage) -> Result<Option<MessageId>, Refusal> {
        let Some(key) = &message.key else {
            return Ok(None);
        };
        let oldest = self.now.minus(KEY_LIFE).millis();
        let found = self
            .conn
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
    fn thread_of(&self, message: &NewMessage) -> Result<Option<i64>, Refusal> {
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
            .conn
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

    fn insert_message(
        &self,
        id: MessageId,
        message: &NewMessage,
        thread: Option<i64>,
    ) -> rusqlite::Result<()> {
        let (from, to) = (message.from.as_str(), message.to.as_str());
        self.conn
            .prepare_cached("INSERT INTO messages VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)")?
            .execute(params![
                id.0,
                from,
                to,
                message.body,
                message.in_reply_to.map(|id| id.0),
                thread,
                self.now.millis(),
                count(text::encoded_length(&message.body)),
                checksum(id, from, to, &message.body, message.in_reply_to, self.now),
            ])?;
        self.conn
            .prepare_cached("INSERT INTO mail VALUES (?1, ?2, 0, 0, 0, NULL, NULL, 0, NULL)")?
            .execute(params![id.0, to])?;
        Ok(())
    }

    fn send_transient(&mut self, message: NewMessage) -> Result<Sent, Refusal> {
        let to = message.to.to_string();
        if self.books.transients.waiting(&to) >= MAX_WAITING {
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

/// Receiving.
impl Tx<'_> {
    /// The turn that `name` stands for, opened if it is new, and the one it displaced.
    fn join_or_open(
        &mut self,
        agent: &AgentName,
        name: &TurnId,
    ) -> Result<(OpenTurn, Option<TurnId>), Refusal> {
        if let Some(open) = self.open_turn_named(agent, name)? {
            return Ok((open, None));
        }
        if self.has_ended(agent, name)? {
            return Err(Refusal::TurnEnded(name.to_string()));
        }
        let mut displaced = None;
        if let Some(open) = self.open_turn(agent)? {
            displaced = Some(open.name.clone());
            self.give_back(agent, open, Outcome::Displaced, true)?;
        }
        Ok((self.open_in_mind(agent, name)?, displaced))
    }

    fn replay(
        &self,
        agent: &AgentName,
        open: &OpenTurn,
        req: &ReqId,
    ) -> Result<Vec<Message>, Refusal> {
        let mut messages = self.books.transients.replay(agent.as_str(), req);
        if let Some(seq) = open.seq {
            let mut held = self.conn.prepare_cached(
                "SELECT l.id, m.sender, m.recipient, m.body, m.in_reply_to, m.sent_at, m.size, \
                 m.checksum, l.deliveries FROM mail l LEFT JOIN messages m ON m.id = l.id \
                 WHERE l.turn = ?1 AND l.state = 1 AND l.req = ?2 ORDER BY l.id",
            )?;
            let mut rows = held.query(params![seq, req.as_str()])?;
            while let Some(row) = rows.next()? {
                messages.push(message_from(row, agent, 0)?);
            }
        }
        Ok(messages)
    }

    /// Leases the oldest waiting messages to the open turn.
    fn lease(&mut self, receive: &Receive, open: &mut OpenTurn) -> Result<Vec<Message>, Refusal> {
        let agent = &receive.agent;
        let (transient, bytes) =
            self.books
                .transients
                .fitting(agent.as_str(), receive.max, BATCH_BYTES);
        let durable = self.oldest_waiting(agent, receive.max - transient, bytes)?;
        if transient == 0 && durable.is_empty() {
            return Ok(durable);
        }
        let seq = self.turn_row(agent, open)?;
        let req = receive.req.as_ref().map(ReqId::as_str);
        for message in &durable {
            self.conn
                .prepare_cached(
                    "UPDATE mail SET state = 1, deliveries = ?2, turn = ?3, req = ?4, \
                     confirmed = 0 WHERE id = ?1",
                )?
                .execute(params![message.id.0, message.delivery, seq, req])?;
        }
        self.took(agent, durable.len())?;
        let mut messages =
            self.books
                .transients
                .take(agent.as_str(), transient, true, receive.req.as_ref());
        messages.extend(durable);
        Ok(messages)
    }

    /// Acks and returns the oldest waiting messages.
    fn take_without_turn(&mut self, receive: &Receive) -> Result<Vec<Message>, Refusal> {
        let agent = &receive.agent;
        let (transient, bytes) =
            self.books
                .transients
                .fitting(agent.as_str(), receive.max, BATCH_BYTES);
        let durable = self.oldest_waiting(agent, receive.max - transient, bytes)?;
        for message in &durable {
            self.conn
                .prepare_cached(
                    "UPDATE mail SET state = 2, deliveries = ?2, turn = NULL, req = NULL, \
                     settled_at = ?3 WHERE id = ?1",
                )?
                .execute(params![message.id.0, message.delivery, self.now.millis()])?;
        }
        self.took(agent, durable.len())?;
        let mut messages = self
            .books
            .transients
            .take(agent.as_str(), transient, false, None);
        messages.extend(durable);
        Ok(messages)
    }

    /// The oldest waiting messages that fit into one line of which `taken` bytes are taken,
    /// numbered for their next delivery.
    fn oldest_waiting(
        &mut self,
        agent: &AgentName,
        max: u32,
        taken: u32,
    ) -> Result<Vec<Message>, Refusal> {
        if max == 0 || self.books.inbox(self.conn, agent.as_str())?.depth == 0 {
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
    ) -> Result<(Vec<Message>, Vec<MessageId>), Refusal> {
        let mut waiting = self.conn.prepare_cached(
            "SELECT l.id, m.sender, m.recipient, m.body, m.in_reply_to, m.sent_at, m.size, \
             m.checksum, l.deliveries FROM mail l LEFT JOIN messages m ON m.id = l.id \
             WHERE l.recipient = ?1 AND l.state = 0 ORDER BY l.id LIMIT ?2",
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
                Ok(message) => messages.push(message),
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
            self.settle_row(*id, MessageState::Dead)?;
        }
        if damaged.is_empty() {
            return Ok(());
        }
        self.took(agent, damaged.len())
    }

    fn took(&mut self, agent: &AgentName, taken: usize) -> rusqlite::Result<()> {
        let inbox = self.books.inbox_mut(self.conn, agent.as_str())?;
        inbox.depth = inbox.depth.saturating_sub(count(taken));
        Ok(())
    }
}

/// Ending a turn.
impl Tx<'_> {
    /// Ends the open turn by giving back what it holds.
    fn give_back(
        &mut self,
        agent: &AgentName,
        mut open: OpenTurn,
        outcome: Outcome,
        counts: bool,
    ) -> rusqlite::Result<TurnClosed> {
        let seq = self.turn_row(agent, &mut open)?;
        let mut closed = TurnClosed {
            result: TurnResult::Requeued,
            acked: 0,
            requeued: 0,
            dead: 0,
        };
        for row in self.held_rows(seq)? {
            let failures = row.failures + u32::from(counts);
            if counts && failures >= self.limits.deliveries_before_dead {
                self.settle_row(row.id, MessageState::Dead)?;
                closed.dead += 1;
            } else {
                self.put_back(row.id, failures)?;
                closed.requeued += 1;
            }
        }
        self.books.transients.end(agent.as_str(), &BTreeSet::new());
        self.end_turn(agent, seq, outcome, &closed)?;
        self.books.inbox_mut(self.conn, agent.as_str())?.depth += closed.requeued;
        Ok(closed)
    }

    fn held_rows(&self, seq: i64) -> rusqlite::Result<Vec<HeldRow>> {
        self.conn
            .prepare_cached(
                "SELECT id, confirmed, failures FROM mail WHERE turn = ?1 AND state = 1 ORDER BY id",
            )?
            .query_map([seq], |row| {
                Ok(HeldRow {
                    id: MessageId(row.get(0)?),
                    confirmed: row.get(1)?,
                    failures: row.get(2)?,
                })
            })?
            .collect()
    }

    /// Back to its place in the inbox: order is by id, so its place is where it was.
    fn put_back(&self, id: MessageId, failures: u32) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE mail SET state = 0, failures = ?2, turn = NULL, req = NULL, confirmed = 0, \
                 settled_at = NULL WHERE id = ?1",
            )?
            .execute(params![id.0, failures])
            .map(|_| ())
    }

    /// The end of a message's way. The turn stays in its row: it is part of the receipt.
    fn settle_row(&self, id: MessageId, state: MessageState) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("UPDATE mail SET state = ?2, settled_at = ?3 WHERE id = ?1")?
            .execute(params![id.0, state as i64, self.now.millis()])
            .map(|_| ())
    }

    fn state_of(&self, id: MessageId) -> rusqlite::Result<Option<(MessageState, String)>> {
        self.conn
            .prepare_cached("SELECT state, recipient FROM mail WHERE id = ?1")?
            .query_row([id.0], |row| Ok((state_from(row.get(0)?), row.get(1)?)))
            .optional()
    }
}

impl Tx<'_> {
    /// Marks messages of the operator's inbox as dealt with; says how many were waiting.
    ///
    /// # Errors
    /// Only those of SQLite: ids that are not waiting there are passed over.
    pub fn ack_operator_mail(&mut self, ids: &[MessageId]) -> Result<u32, Refusal> {
        let operator = Recipient::Operator;
        // In mind before its rows change: it is counted from them.
        self.books.inbox(self.conn, operator.as_str())?;
        let mut acked = 0;
        for id in ids {
            acked += self
                .conn
                .prepare_cached(
                    "UPDATE mail SET state = 2, deliveries = deliveries + 1, settled_at = ?3 \
                     WHERE id = ?1 AND recipient = ?2 AND state = 0",
                )?
                .execute(params![id.0, operator.as_str(), self.now.millis()])?;
        }
        let acked = count(acked);
        let inbox = self.books.inbox_mut(self.conn, operator.as_str())?;
        inbox.depth = inbox.depth.saturating_sub(acked);
        Ok(acked)
    }
}

/// A message row as its recipient sees it, `more` deliveries later than stored, after everything
/// in it was compared with its checksum.
fn message_from(row: &Row<'_>, agent: &AgentName, more: u32) -> Result<Message, Refusal> {
    let id = MessageId(row.get(0)?);
    // A row that is gone, bytes that are no text, a number out of range: the disk changed it.
    let damaged = |_: rusqlite::Error| Refusal::Damaged(id);
    let sender: String = row.get(1).map_err(damaged)?;
    let message = Message {
        id,
        from: sender.parse().map_err(|_| Refusal::Damaged(id))?,
        to: row.get(2).map_err(damaged)?,
        body: row.get(3).map_err(damaged)?,
        in_reply_to: row
            .get::<_, Option<i64>>(4)
            .map_err(damaged)?
            .map(MessageId),
        sent_at: Timestamp::from_millis(row.get(5).map_err(damaged)?),
        delivery: row.get::<_, u32>(8).map_err(damaged)?.saturating_add(more),
    };
    let stored: u32 = row.get(7).map_err(damaged)?;
    let intact = checksum(
        id,
        &sender,
        &message.to,
        &message.body,
        message.in_reply_to,
        message.sent_at,
    ) == stored;
    if !intact || message.to != agent.as_str() {
        return Err(Refusal::Damaged(id));
    }
    Ok(message)
}

/// Guards against a disk that changes what was written; SQLite checks its log but not its pages.
pub(super) fn checksum(
    id: MessageId,
    from: &str,
    to: &str,
    body: &str,
    in_reply_to: Option<MessageId>,
    sent_at: Timestamp,
) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for number in [id.0, in_reply_to.map_or(0, |id| id.0), sent_at.millis()] {
        hasher.update(&number.to_le_bytes());
    }
    for part in [from, to, body] {
        hasher.update(part.as_bytes());
        hasher.update(&[0xff]);
    }
    hasher.finalize()
}

/// A number of rows or bytes, which every limit keeps far below four billion.
pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
