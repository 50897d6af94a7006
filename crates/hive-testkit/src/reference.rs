//! A small broker in memory that keeps every promise, to test the checker with.
//!
//! It is the turn semantics of `docs/wire.md` without sockets, waiting or disks: a call is applied
//! at one point in time. What it holds survives its crashes, unless it is told to have a [`Bug`].

use std::collections::{BTreeMap, HashMap};

use hive_wire::{
    ErrorCode, MessageId, ReqId, SendKey, Timestamp, TurnId,
    agent::{MessageState, Receipt, TurnClosed, TurnResult},
};

use crate::history::{Body, Call, Delivery, Outcome};

mod bugs;
pub mod schedule;

pub use bugs::Bug;

/// The broker.
#[derive(Debug)]
pub struct Broker {
    state: State,
    /// The state a while ago, for bugs that lose what came after.
    old: State,
    applied: u32,
    bug: Option<Bug>,
}

#[derive(Debug, Clone)]
struct State {
    dead_after: u32,
    messages: BTreeMap<MessageId, Message>,
    keys: HashMap<(String, SendKey), MessageId>,
    turns: HashMap<(String, TurnId), Turn>,
    open: HashMap<String, TurnId>,
    /// The place of the next message, or of the next one that goes to the end.
    next: i64,
}

#[derive(Debug, Clone)]
struct Message {
    from: String,
    to: String,
    body: Body,
    state: MessageState,
    turn: Option<TurnId>,
    deliveries: u32,
    failures: u32,
    place: i64,
}

#[derive(Debug, Clone, Default)]
struct Turn {
    batches: Vec<Batch>,
    ended: Option<(TurnResult, TurnClosed)>,
}

#[derive(Debug, Clone)]
struct Batch {
    req: Option<ReqId>,
    deliveries: Vec<Delivery>,
    confirmed: bool,
}

impl Broker {
    /// An empty broker that gives up on a message after `dead_after` counted failures.
    pub fn new(dead_after: u32, bug: Option<Bug>) -> Self {
        let state = State {
            dead_after,
            messages: BTreeMap::new(),
            keys: HashMap::new(),
            turns: HashMap::new(),
            open: HashMap::new(),
            next: 1,
        };
        Self {
            old: state.clone(),
            state,
            applied: 0,
            bug,
        }
    }

    /// Carries out a call that came in on `agent`'s socket and fills in its outcome.
    pub fn apply(&mut self, agent: &str, call: &mut Call) {
        if self.bug.is_some() {
            if self.applied.is_multiple_of(8) {
                self.old = self.state.clone();
            }
            self.applied += 1;
        }
        let (state, bug) = (&mut self.state, self.bug);
        match call {
            Call::Send {
                to,
                key,
                body,
                outcome,
            } => *outcome = Outcome::Ok(state.send(agent, to, key.as_ref(), body)),
            Call::Recv {
                turn,
                req,
                max,
                outcome,
            } => {
                *outcome = match state.recv(agent, turn.as_ref(), req.as_ref(), *max, bug) {
                    Ok(batch) => Outcome::Ok(batch),
                    Err(code) => Outcome::Refused(code),
                };
            }
            Call::Confirm { turn, req, outcome } => {
                *outcome = Outcome::Ok(state.confirm(agent, turn, req));
            }
            Call::Ack { turn, ids, outcome } => {
                let covered = |turn: &Turn| match bug {
                    Some(Bug::AcksEverything) => turn.held(),
                    _ => ids.iter().copied().chain(turn.confirmed()).collect(),
                };
                *outcome = Outcome::Ok(state.end(agent, turn, TurnResult::Acked, covered, false));
            }
            Call::Requeue {
                turn,
                reason,
                outcome,
            } => {
                let how = TurnResult::Requeued;
                *outcome =
                    Outcome::Ok(state.end(agent, turn, how, |_| Vec::new(), reason.counts()));
            }
        }
        if bug == Some(Bug::RequeuesAtEnd) {
            self.state.move_requeued_to_end();
        }
    }

    /// The daemon dies and comes back.
    pub fn crash(&mut self) {
        let old = self.old.clone();
        match self.bug {
            Some(Bug::LateCommit) => self.state = old,
            Some(Bug::ForgetsAcks) => self.state.forget_acks(&old),
            Some(Bug::ForgetsDeliveries) => self.state.forget_deliveries(&old),
            Some(Bug::ForgetsKeys) => self.state.keys.clear(),
            Some(Bug::ForgetsTurns) => self.state.forget_turns(),
            _ => {}
        }
    }

    /// What became of every message.
    pub fn receipts(&self) -> Vec<Receipt> {
        let messages = self.state.messages.iter();
        messages
            .map(|(id, message)| Receipt {
                message_id: *id,
                from: message.from.parse().expect("labels of the schedule"),
                to: message.to.clone(),
                state: message.state,
                deliveries: message.deliveries,
                turn: message.turn.clone(),
                sent_at: Timestamp::from_millis(0),
                acked_at: None,
            })
            .collect()
    }
}

impl State {
    fn send(&mut self, from: &str, to: &str, key: Option<&SendKey>, body: &Body) -> MessageId {
        let key = key.map(|key| (from.to_owned(), key.clone()));
        if let Some(id) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return *id;
        }
        let id = MessageId(self.next);
        self.next += 1;
        if let Some(key) = key {
            self.keys.insert(key, id);
        }
        let message = Message {
            from: from.to_owned(),
            to: to.to_owned(),
            body: body.clone(),
            state: MessageState::Stored,
            turn: None,
            deliveries: 0,
            failures: 0,
            place: id.0,
        };
        self.messages.insert(id, message);
        id
    }

    fn recv(
        &mut self,
        agent: &str,
        turn: Option<&TurnId>,
        req: Option<&ReqId>,
        max: u32,
        bug: Option<Bug>,
    ) -> Result<Vec<Delivery>, ErrorCode> {
        let Some(turn) = turn else {
            let batch = self.lease(agent, None, max);
            for delivery in &batch {
                self.settle(delivery.id, MessageState::Acked);
            }
            return Ok(batch);
        };
        let turn = match self.open.get(agent) {
            Some(open) if turn.is_current() => open.clone(),
            None if turn.is_current() => return Err(ErrorCode::NoOpenTurn),
            _ => turn.clone(),
        };
        let key = (agent.to_owned(), turn.clone());
        if self.turns.get(&key).is_some_and(|t| t.ended.is_some()) {
            return Err(ErrorCode::TurnEnded);
        }
        if let Some(displaced) = self.open.get(agent).filter(|open| **open != turn).cloned() {
            if bug == Some(Bug::KeepsDisplaced) {
                self.give_back(agent, &displaced);
            } else {
                self.end(agent, &displaced, TurnResult::Superseded, |_| vec![], true);
            }
        }
        self.open.insert(agent.to_owned(), turn.clone());
        let known = self.turns.entry(key.clone()).or_default();
        let same = |batch: &&Batch| req.is_some() && batch.req.as_ref() == req;
        if let Some(batch) = known.batches.iter().find(same)
            && bug != Some(Bug::IgnoresReq)
        {
            return Ok(batch.deliveries.clone());
        }
        let deliveries = self.lease(agent, Some(&turn), max);
        if !deliveries.is_empty() {
            let batch = Batch {
                req: req.cloned(),
                deliveries: deliveries.clone(),
                confirmed: false,
            };
            self.turns.entry(key).or_default().batches.push(batch);
        }
        Ok(deliveries)
    }

    fn lease(&mut self, agent: &str, turn: Option<&TurnId>, max: u32) -> Vec<Delivery> {
        let mut waiting: Vec<_> = self
            .messages
            .iter_mut()
            .filter(|(_, m)| m.to == agent && m.state == MessageState::Stored)
            .collect();
        waiting.sort_by_key(|(_, message)| message.place);
        let taken = waiting.into_iter().take(max as usize);
        taken
            .map(|(id, message)| {
                message.state = MessageState::Leased;
                message.deliveries += 1;
                message.turn = turn.cloned();
                Delivery {
                    id: *id,
                    from: message.from.clone(),
                    body: message.body.clone(),
                    delivery: message.deliveries,
                }
            })
            .collect()
    }

    fn confirm(&mut self, agent: &str, turn: &TurnId, req: &ReqId) -> u32 {
        let turn = match self.open.get(agent) {
            Some(open) if turn.is_current() => open.clone(),
            _ => turn.clone(),
        };
        let turn = self.turns.get_mut(&(agent.to_owned(), turn));
        let batches = turn.filter(|t| t.ended.is_none()).map(|t| &mut t.batches);
        let mut batches = batches.into_iter().flatten();
        let Some(batch) = batches.find(|batch| batch.req.as_ref() == Some(req)) else {
            return 0;
        };
        batch.confirmed = true;
        u32::try_from(batch.deliveries.len()).expect("a batch is small")
    }

    /// Ends a turn one way, or says how it ended before.
    fn end(
        &mut self,
        agent: &str,
        turn: &TurnId,
        how: TurnResult,
        covered: impl Fn(&Turn) -> Vec<MessageId>,
        counts: bool,
    ) -> TurnClosed {
        let key = (agent.to_owned(), turn.clone());
        let mut closed = TurnClosed {
            result: how,
            acked: 0,
            requeued: 0,
            dead: 0,
        };
        let Some(found) = self.turns.get(&key) else {
            closed.result = TurnResult::Unknown;
            return closed;
        };
        if let Some((ended, counts)) = &found.ended {
            let again = *ended == how;
            return TurnClosed {
                result: if again {
                    TurnResult::Already
                } else {
                    TurnResult::Superseded
                },
                ..counts.clone()
            };
        }
        let (covered, held) = (covered(found), found.held());
        for id in held {
            let message = self.messages.get_mut(&id).expect("held messages exist");
            if message.turn.as_ref() != Some(turn) || message.state != MessageState::Leased {
                continue;
            }
            message.failures += u32::from(counts);
            if covered.contains(&id) {
                closed.acked += 1;
                self.settle(id, MessageState::Acked);
            } else if counts && message.failures >= self.dead_after {
                closed.dead += 1;
                self.settle(id, MessageState::Dead);
            } else {
                closed.requeued += 1;
                self.settle(id, MessageState::Stored);
            }
        }
        self.open.retain(|_, open| open != turn);
        self.turns.entry(key).or_default().ended = Some((how, closed.clone()));
        closed
    }

    fn settle(&mut self, id: MessageId, state: MessageState) {
        let message = self.messages.get_mut(&id).expect("settled messages exist");
        message.state = state;
    }
}

impl Turn {
    fn held(&self) -> Vec<MessageId> {
        let batches = self.batches.iter().flat_map(|batch| &batch.deliveries);
        batches.map(|delivery| delivery.id).collect()
    }

    fn confirmed(&self) -> Vec<MessageId> {
        let batches = self.batches.iter().filter(|batch| batch.confirmed);
        let deliveries = batches.flat_map(|batch| &batch.deliveries);
        deliveries.map(|delivery| delivery.id).collect()
    }
}
