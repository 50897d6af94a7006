//! The semantics of [`Mail`] in memory, as plainly as they can be said.
//!
//! Letters are never removed and every question is answered by looking at all of them. Whatever has
//! to be undone is undone by going back to a copy of the whole.

use std::collections::BTreeMap;

use hive_wire::{
    AgentName, MessageId, Recipient, ReqId, SendKey, SenderLabel, Timestamp, TurnId,
    agent::{
        InboxStatus, Message, MessageState, Receipt, RequeueReason, Sent, TurnClosed, TurnResult,
    },
};

use super::{Limits, Op, Outcome, Subject};
use crate::{Mail, NewMessage, Receive, Received, Refusal, mail::Verdict};

const DAY: i64 = 24 * 60 * 60 * 1_000;
/// The most transient messages that wait in one inbox.
const TRANSIENT_DEPTH: usize = 1_000;
/// What fits into a line with room to spare.
const BATCH_BYTES: usize = 900 * 1024;

/// The reference implementation.
#[derive(Debug, Clone)]
pub struct Model {
    limits: Limits,
    now: Timestamp,
    letters: BTreeMap<MessageId, Letter>,
    next_durable: i64,
    next_transient: i64,
    keys: BTreeMap<(SenderLabel, SendKey), (MessageId, Timestamp)>,
    turns: BTreeMap<AgentName, Vec<Turn>>,
}

#[derive(Debug, Clone)]
struct Letter {
    message: Message,
    state: MessageState,
    failures: u32,
    turn: Option<TurnId>,
    req: Option<ReqId>,
    confirmed: bool,
    acked_at: Option<Timestamp>,
}

impl Letter {
    fn is_transient(&self) -> bool {
        self.message.id.is_transient()
    }
}

#[derive(Debug, Clone)]
struct Turn {
    name: TurnId,
    /// Whether anybody was told anything about it; if not, a crash forgets it.
    answered: bool,
    end: Option<(End, TurnClosed)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Acked,
    Requeued,
    Displaced,
}

impl Model {
    /// A model that holds nothing.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            now: Timestamp::from_millis(0),
            letters: BTreeMap::new(),
            next_durable: 1,
            next_transient: -1,
            keys: BTreeMap::new(),
            turns: BTreeMap::new(),
        }
    }

    fn forget_what_was_in_memory(&mut self) {
        self.letters.retain(|id, _| !id.is_transient());
        for turns in self.turns.values_mut() {
            turns.retain(|turn| turn.answered);
        }
    }

    fn open_turn(&mut self, agent: &AgentName) -> Option<&mut Turn> {
        let turns = self.turns.get_mut(agent)?;
        turns.iter_mut().find(|turn| turn.end.is_none())
    }

    /// The name of the open turn, when `name` is that or `current`.
    fn joined(&mut self, agent: &AgentName, name: &TurnId) -> Result<Option<TurnId>, Refusal> {
        let open = self.open_turn(agent).map(|turn| turn.name.clone());
        if name.is_current() {
            return open.map(Some).ok_or(Refusal::NoOpenTurn);
        }
        Ok(open.filter(|open| open == name))
    }

    fn ended(&self, agent: &AgentName, name: &TurnId) -> Option<&(End, TurnClosed)> {
        let turns = self.turns.get(agent)?;
        turns.iter().find(|turn| turn.name == *name)?.end.as_ref()
    }

    /// What waits in an inbox in the order it is handed over.
    fn waiting(&self, recipient: &str) -> Vec<MessageId> {
        let waits = |letter: &&Letter| {
            letter.state == MessageState::Stored && letter.message.to == recipient
        };
        let ids = |transient: bool| {
            let of_kind = self.letters.values().filter(waits);
            of_kind
                .filter(move |letter| letter.is_transient() == transient)
                .map(|letter| letter.message.id)
        };
        // Transient ids count down, so the oldest is the greatest.
        ids(true).rev().chain(ids(false)).collect()
    }

    /// What the open turn of an agent holds.
    fn held(&self, agent: &str) -> Vec<MessageId> {
        let held =
            |letter: &&Letter| letter.state == MessageState::Leased && letter.message.to == agent;
        self.letters
            .values()
            .filter(held)
            .map(|letter| letter.message.id)
            .collect()
    }

    fn letter(&mut self, id: MessageId) -> &mut Letter {
        self.letters.get_mut(&id).expect("it was just looked up")
    }

    /// Ends the open turn. `fate` says what becomes of each message it holds.
    fn end(
        &mut self,
        agent: &AgentName,
        end: End,
        mut fate: impl FnMut(&mut Letter) -> MessageState,
    ) -> TurnClosed {
        let mut closed = TurnClosed {
            result: match end {
                End::Acked => TurnResult::Acked,
                End::Requeued | End::Displaced => TurnResult::Requeued,
            },
            acked: 0,
            requeued: 0,
            dead: 0,
        };
        for id in self.held(agent.as_str()) {
            let now = self.now;
            let letter = self.letter(id);
            letter.state = fate(letter);
            match letter.state {
                MessageState::Acked => {
                    closed.acked += 1;
                    letter.acked_at = Some(now);
                }
                MessageState::Dead => closed.dead += 1,
                // A transient message is handed over once: nothing of it comes back.
                _ if letter.is_transient() => letter.state = MessageState::Discarded,
                _ => {
                    closed.requeued += 1;
                    letter.turn = None;
                }
            }
        }
        let turn = self.open_turn(agent).expect("the caller looked");
        turn.answered = true;
        turn.end = Some((end, closed.clone()));
        closed
    }

    fn give_back(&mut self, agent: &AgentName, end: End, counts: bool) -> TurnClosed {
        let limit = self.limits.deliveries_before_dead;
        self.end(agent, end, |letter| {
            letter.failures += u32::from(counts);
            if counts && letter.failures >= limit && !letter.is_transient() {
                MessageState::Dead
            } else {
                MessageState::Stored
            }
        })
    }

    /// How a turn stands that is not open.
    fn late(&self, agent: &AgentName, turn: &TurnId, wanted: End) -> TurnClosed {
        let Some((end, closed)) = self.ended(agent, turn) else {
            return TurnClosed {
                result: TurnResult::Unknown,
                acked: 0,
                requeued: 0,
                dead: 0,
            };
        };
        let result = if *end == wanted {
            TurnResult::Already
        } else {
            TurnResult::Superseded
        };
        TurnClosed {
            result,
            ..closed.clone()
        }
    }

    /// The turn that `name` stands for, opened when it is new; and the one that made place for it.
    fn join_or_open(
        &mut self,
        agent: &AgentName,
        name: &TurnId,
    ) -> Result<(TurnId, Option<TurnId>), Refusal> {
        if let Some(name) = self.joined(agent, name)? {
            return Ok((name, None));
        }
        if self.ended(agent, name).is_some() {
            return Err(Refusal::TurnEnded(name.to_string()));
        }
        let displaced = self.open_turn(agent).map(|turn| turn.name.clone());
        if displaced.is_some() {
            self.give_back(agent, End::Displaced, true);
        }
        let turns = self.turns.entry(agent.clone()).or_default();
        turns.push(Turn {
            name: name.clone(),
            answered: false,
            end: None,
        });
        Ok((name.clone(), displaced))
    }

    /// What a receive of this name brought in the open turn.
    fn batch(&self, agent: &AgentName, req: &ReqId) -> Vec<MessageId> {
        let mut ids = self.held(agent.as_str());
        ids.retain(|id| self.letters[id].req.as_ref() == Some(req));
        // Transient ones first, oldest first.
        ids.sort_by_key(|id| (!id.is_transient(), id.0.abs()));
        ids
    }

    /// The first messages of the inbox that fit into one answer.
    fn next_batch(&self, receive: &Receive) -> Vec<MessageId> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        for id in self
            .waiting(receive.agent.as_str())
            .into_iter()
            .take(receive.max as usize)
        {
            let line = serde_json::to_string(&self.letters[&id].message).expect("it encodes");
            bytes += line.len();
            if bytes > BATCH_BYTES && !batch.is_empty() {
                break;
            }
            batch.push(id);
        }
        batch
    }

    fn check_reply(&self, message: &NewMessage) -> Result<(), Refusal> {
        let Some(parent) = message.in_reply_to.filter(|id| !id.is_transient()) else {
            return Ok(());
        };
        let Some(letter) = self.letters.get(&parent) else {
            return Err(Refusal::NotFound {
                what: "message",
                id: parent.to_string(),
            });
        };
        let parties = [letter.message.from.as_str(), letter.message.to.as_str()];
        if parties.contains(&message.from.as_str()) {
            Ok(())
        } else {
            Err(Refusal::NotYourThread(parent))
        }
    }

    fn check_room(&self, message: &NewMessage) -> Result<(), Refusal> {
        let depth = if message.transient {
            let open = [MessageState::Stored, MessageState::Leased];
            let of_recipient = self.letters.values().filter(|letter| {
                letter.is_transient()
                    && letter.message.to == message.to.as_str()
                    && open.contains(&letter.state)
            });
            of_recipient.count()
        } else {
            let waiting = self.waiting(message.to.as_str());
            waiting.iter().filter(|id| !id.is_transient()).count()
        };
        let full = if message.transient {
            depth >= TRANSIENT_DEPTH
        } else {
            message.bounded && depth >= self.limits.inbox_depth as usize
        };
        if full {
            return Err(Refusal::InboxFull {
                recipient: message.to.to_string(),
                depth: u32::try_from(depth).unwrap_or(u32::MAX),
            });
        }
        Ok(())
    }
}

impl Mail for Model {
    fn send(&mut self, message: NewMessage) -> Result<Sent, Refusal> {
        let key = message.key.clone().map(|key| (message.from.clone(), key));
        if let Some((first, used_at)) = key.as_ref().and_then(|key| self.keys.get(key))
            && used_at.millis() >= self.now.millis() - DAY
        {
            return Ok(Sent {
                message_id: *first,
                duplicate: true,
            });
        }
        self.check_reply(&message)?;
        self.check_room(&message)?;
        let id = if message.transient {
            self.next_transient -= 1;
            MessageId(self.next_transient + 1)
        } else {
            self.next_durable += 1;
            MessageId(self.next_durable - 1)
        };
        if let Some(key) = key.filter(|_| !message.transient) {
            self.keys.insert(key, (id, self.now));
        }
        let letter = Letter {
            message: Message {
                id,
                from: message.from,
                to: message.to.to_string(),
                body: message.body,
                in_reply_to: message.in_reply_to,
                sent_at: self.now,
                delivery: 0,
            },
            state: MessageState::Stored,
            failures: 0,
            turn: None,
            req: None,
            confirmed: false,
            acked_at: None,
        };
        self.letters.insert(id, letter);
        Ok(Sent {
            message_id: id,
            duplicate: false,
        })
    }

    fn receive(&mut self, receive: &Receive) -> Result<Received, Refusal> {
        let mut received = Received::default();
        if let Some(name) = &receive.turn {
            let (turn, displaced) = self.join_or_open(&receive.agent, name)?;
            received.turn = Some(turn);
            received.displaced = displaced;
            if let Some(req) = &receive.req {
                let batch = self.batch(&receive.agent, req);
                received.messages = batch
                    .iter()
                    .map(|id| self.letters[id].message.clone())
                    .collect();
                if !batch.is_empty() {
                    return Ok(received);
                }
            }
        }
        let now = self.now;
        for id in self.next_batch(receive) {
            let turn = received.turn.clone();
            let letter = self.letter(id);
            letter.message.delivery += 1;
            letter.confirmed = false;
            if turn.is_some() {
                letter.state = MessageState::Leased;
                letter.req.clone_from(&receive.req);
            } else {
                letter.state = MessageState::Acked;
                letter.acked_at = Some(now);
            }
            letter.turn = turn;
            received.messages.push(letter.message.clone());
        }
        if received.turn.is_some()
            && (!received.messages.is_empty() || !receive.parks)
            && let Some(turn) = self.open_turn(&receive.agent)
        {
            turn.answered = true;
        }
        Ok(received)
    }

    fn confirm(&mut self, agent: &AgentName, turn: &TurnId, req: &ReqId) -> Result<u32, Refusal> {
        if self.joined(agent, turn)?.is_none() {
            return Ok(0);
        }
        let batch = self.batch(agent, req);
        for id in &batch {
            self.letter(*id).confirmed = true;
        }
        Ok(u32::try_from(batch.len()).unwrap_or(u32::MAX))
    }

    fn ack_turn(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        ids: &[MessageId],
    ) -> Result<TurnClosed, Refusal> {
        if self.joined(agent, turn)?.is_none() {
            return Ok(self.late(agent, turn, End::Acked));
        }
        Ok(self.end(agent, End::Acked, |letter| {
            if letter.confirmed || ids.contains(&letter.message.id) {
                MessageState::Acked
            } else {
                MessageState::Stored
            }
        }))
    }

    fn requeue(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> Result<TurnClosed, Refusal> {
        if self.joined(agent, turn)?.is_none() {
            return Ok(self.late(agent, turn, End::Requeued));
        }
        let counts = matches!(reason, RequeueReason::Failed | RequeueReason::Crash);
        Ok(self.give_back(agent, End::Requeued, counts))
    }

    fn settle(&mut self, id: MessageId, verdict: Verdict) -> Result<MessageState, Refusal> {
        let Some(letter) = self.letters.get_mut(&id).filter(|_| !id.is_transient()) else {
            return Err(Refusal::NotFound {
                what: "message",
                id: id.to_string(),
            });
        };
        if letter.state != MessageState::Dead {
            let state = letter.state;
            return Err(Refusal::NotDead { id, state });
        }
        match verdict {
            Verdict::Redeliver => {
                letter.failures = 0;
                letter.turn = None;
                letter.state = MessageState::Stored;
            }
            Verdict::Discard => letter.state = MessageState::Discarded,
        }
        Ok(letter.state)
    }

    fn receipt(&mut self, id: MessageId) -> Result<Option<Receipt>, Refusal> {
        let durable = self.letters.get(&id).filter(|_| !id.is_transient());
        Ok(durable.map(|letter| Receipt {
            message_id: id,
            from: letter.message.from.clone(),
            to: letter.message.to.clone(),
            state: letter.state,
            deliveries: letter.message.delivery,
            turn: letter.turn.clone(),
            sent_at: letter.message.sent_at,
            acked_at: letter.acked_at,
        }))
    }

    fn inbox(&mut self, recipient: &Recipient) -> Result<InboxStatus, Refusal> {
        let count = |ids: Vec<MessageId>| u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let turn = match recipient {
            Recipient::Operator => None,
            Recipient::Agent(agent) => self.open_turn(agent).map(|turn| turn.name.clone()),
        };
        Ok(InboxStatus {
            unread: count(self.waiting(recipient.as_str())),
            inflight: count(self.held(recipient.as_str())),
            turn,
        })
    }
}

impl Subject for Model {
    fn group(&mut self, now: Timestamp, operations: &[Op]) -> Vec<Outcome> {
        self.now = now;
        let run = |operation: &Op| {
            let before = self.clone();
            let result = operation.apply(self);
            if result.is_err() {
                *self = before;
            }
            Outcome::of(result)
        };
        operations.iter().map(run).collect()
    }

    fn restart(&mut self) {
        self.forget_what_was_in_memory();
    }

    fn crash(&mut self) {
        self.forget_what_was_in_memory();
    }
}
