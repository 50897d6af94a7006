//! Messages that never touch the disk: handed over at most once, lost with the process.
//!
//! They belong to a turn like any other message, so that a repeated receive brings them again and
//! an ack counts them; but a turn that gives its messages back does not bring these back. How the
//! newest of them ended is remembered, so that whoever sent one can see that it has to be sent again.

use std::collections::{BTreeSet, VecDeque};

use foldhash::{HashMap, HashMapExt};
use hive_wire::{
    MessageId, ReqId, Timestamp,
    agent::{Message, MessageState, Receipt},
    text,
};

use super::mail::{ENVELOPE_BYTES, count};

/// The most transient messages of one agent, waiting or held by its turn.
pub(super) const MAX_WAITING: u32 = 1_000;
/// The most bytes of bodies they may have together.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How many ended ones of an agent are remembered.
const MAX_ENDED: usize = 256;

#[derive(Debug)]
pub(super) struct Transients {
    next_id: i64,
    waiting: HashMap<Box<str>, VecDeque<Message>>,
    held: HashMap<Box<str>, Vec<Held>>,
    /// The receipts of those that ended last, oldest first.
    ended: HashMap<Box<str>, VecDeque<Receipt>>,
    /// What this group did, in that order.
    done: Vec<Done>,
    /// Where the current operation begins in `done`.
    operation: usize,
}

/// A change that can be taken back.
#[derive(Debug)]
enum Done {
    Pushed {
        agent: Box<str>,
    },
    Took {
        agent: Box<str>,
        messages: Vec<Message>,
        held: bool,
    },
    Confirmed {
        agent: Box<str>,
        places: Vec<usize>,
    },
    Ended {
        agent: Box<str>,
        held: Vec<Held>,
    },
}

#[derive(Debug)]
struct Held {
    req: Option<ReqId>,
    confirmed: bool,
    message: Message,
}

impl Transients {
    pub(super) fn new() -> Self {
        // Ids count down from the time of the start, so that no two starts give the same one.
        let next_id = -Timestamp::now().millis().max(1).saturating_mul(1_000);
        Self {
            next_id,
            waiting: HashMap::new(),
            held: HashMap::new(),
            ended: HashMap::new(),
            done: Vec::new(),
            operation: 0,
        }
    }

    pub(super) fn begin_operation(&mut self) {
        self.operation = self.done.len();
    }

    /// Makes the next undo take back everything since the group began.
    pub(super) fn widen_to_group(&mut self) {
        self.operation = 0;
    }

    pub(super) fn keep(&mut self) {
        self.done.clear();
        self.operation = 0;
    }

    pub(super) fn undo_operation(&mut self) {
        while self.done.len() > self.operation {
            match self.done.pop() {
                None => return,
                Some(Done::Pushed { agent }) => {
                    let queue = self.waiting.entry(agent).or_default();
                    queue.pop_back();
                }
                Some(Done::Took {
                    agent,
                    messages,
                    held,
                }) => {
                    if !held {
                        self.forget_newest(&agent, messages.len());
                    } else if let Some(all) = self.held.get_mut(&agent) {
                        all.truncate(all.len().saturating_sub(messages.len()));
                    }
                    let queue = self.waiting.entry(agent).or_default();
                    messages
                        .into_iter()
                        .rev()
                        .for_each(|message| queue.push_front(message));
                }
                Some(Done::Confirmed { agent, places }) => {
                    let held = self.held.entry(agent).or_default();
                    places
                        .into_iter()
                        .for_each(|place| held[place].confirmed = false);
                }
                Some(Done::Ended { agent, held }) => {
                    self.forget_newest(&agent, held.len());
                    self.held.insert(agent, held);
                }
            }
        }
    }

    pub(super) fn take_id(&mut self) -> MessageId {
        self.next_id -= 1;
        MessageId(self.next_id)
    }

    pub(super) fn waiting(&self, agent: &str) -> u32 {
        self.waiting
            .get(agent)
            .map_or(0, |queue| count(queue.len()))
    }

    /// Whether this agent has as much in memory as it may, waiting or held by its turn.
    pub(super) fn is_full(&self, agent: &str) -> bool {
        let waiting = self.waiting.get(agent).into_iter().flatten();
        let held = self.held.get(agent).into_iter().flatten();
        let (mut messages, mut bytes) = (0, 0);
        for message in waiting.chain(held.map(|held| &held.message)) {
            messages += 1;
            bytes += message.body.len();
        }
        messages >= MAX_WAITING || bytes >= MAX_BYTES
    }

    pub(super) fn push(&mut self, agent: &str, message: Message) {
        self.waiting
            .entry(agent.into())
            .or_default()
            .push_back(message);
        self.done.push(Done::Pushed {
            agent: agent.into(),
        });
    }

    /// How many of the oldest waiting messages, at most `max`, fit into so many bytes; at least one
    /// when there is one. And how many bytes they take.
    pub(super) fn fitting(&self, agent: &str, max: u32, bytes: u32) -> (u32, u32) {
        let (mut fit, mut taken) = (0, 0);
        for message in self
            .waiting
            .get(agent)
            .into_iter()
            .flatten()
            .take(max as usize)
        {
            let size = count(text::encoded_length(&message.body)) + ENVELOPE_BYTES;
            if fit > 0 && taken + size > bytes {
                break;
            }
            fit += 1;
            taken += size;
        }
        (fit, taken)
    }

    /// Hands over up to `max` messages; with `hold`, the open turn holds them until it ends.
    pub(super) fn take(
        &mut self,
        agent: &str,
        max: u32,
        hold: bool,
        req: Option<&ReqId>,
    ) -> Vec<Message> {
        let Some(queue) = self.waiting.get_mut(agent) else {
            return Vec::new();
        };
        let taken: Vec<Message> = queue
            .drain(..queue.len().min(max as usize))
            .map(|message| Message {
                delivery: 1,
                ..message
            })
            .collect();
        if queue.is_empty() {
            self.waiting.remove(agent);
        }
        if taken.is_empty() {
            return taken;
        }
        self.done.push(Done::Took {
            agent: agent.into(),
            messages: taken.clone(),
            held: hold,
        });
        if hold {
            let held = self.held.entry(agent.into()).or_default();
            held.extend(taken.iter().map(|message| Held {
                req: req.cloned(),
                confirmed: false,
                message: message.clone(),
            }));
        } else {
            taken
                .iter()
                .for_each(|message| self.remember(agent, message, MessageState::Acked));
        }
        taken
    }

    /// What the receive named `req` brought in the open turn.
    pub(super) fn replay(&self, agent: &str, req: &ReqId) -> Vec<Message> {
        let held = self.held.get(agent).map_or(&[][..], Vec::as_slice);
        let of_req = held.iter().filter(|held| held.req.as_ref() == Some(req));
        of_req.map(|held| held.message.clone()).collect()
    }

    pub(super) fn confirm(&mut self, agent: &str, req: &ReqId) -> u32 {
        let (mut found, mut places) = (0, Vec::new());
        for (place, held) in self.held.get_mut(agent).into_iter().flatten().enumerate() {
            if held.req.as_ref() == Some(req) {
                found += 1;
                if !held.confirmed {
                    held.confirmed = true;
                    places.push(place);
                }
            }
        }
        if !places.is_empty() {
            let agent = agent.into();
            self.done.push(Done::Confirmed { agent, places });
        }
        found
    }

    /// How many messages the open turn holds.
    pub(super) fn held(&self, agent: &str) -> u32 {
        self.held.get(agent).map_or(0, |held| count(held.len()))
    }

    /// The turn ended well, and what it held is gone. Says how many were listed or confirmed.
    pub(super) fn acked(&mut self, agent: &str, ids: &BTreeSet<MessageId>) -> u32 {
        self.end(agent, |held| {
            held.confirmed || ids.contains(&held.message.id)
        })
    }

    /// The turn did not end well, and what it held is gone all the same.
    pub(super) fn given_back(&mut self, agent: &str) {
        self.end(agent, |_| false);
    }

    fn end(&mut self, agent: &str, is_handled: impl Fn(&Held) -> bool) -> u32 {
        let Some(held) = self.held.remove(agent) else {
            return 0;
        };
        let mut acked = 0;
        for one in &held {
            let state = if is_handled(one) {
                acked += 1;
                MessageState::Acked
            } else {
                MessageState::Discarded
            };
            self.remember(agent, &one.message, state);
        }
        let agent = agent.into();
        self.done.push(Done::Ended { agent, held });
        acked
    }

    /// What became of a message to `agent`; none when it never was or is too long ago.
    pub(super) fn receipt(&self, agent: &str, id: MessageId) -> Option<Receipt> {
        let mut waiting = self.waiting.get(agent).into_iter().flatten();
        if let Some(message) = waiting.find(|message| message.id == id) {
            return Some(receipt(message, MessageState::Stored));
        }
        let mut held = self.held.get(agent).into_iter().flatten();
        if let Some(held) = held.find(|held| held.message.id == id) {
            return Some(receipt(&held.message, MessageState::Leased));
        }
        let mut ended = self.ended.get(agent).into_iter().flatten();
        ended.find(|receipt| receipt.message_id == id).cloned()
    }

    fn remember(&mut self, agent: &str, message: &Message, state: MessageState) {
        let ended = self.ended.entry(agent.into()).or_default();
        if ended.len() == MAX_ENDED {
            ended.pop_front();
        }
        ended.push_back(receipt(message, state));
    }

    fn forget_newest(&mut self, agent: &str, count: usize) {
        if let Some(ended) = self.ended.get_mut(agent) {
            ended.truncate(ended.len().saturating_sub(count));
        }
    }
}

fn receipt(message: &Message, state: MessageState) -> Receipt {
    Receipt {
        message_id: message.id,
        from: message.from.clone(),
        to: message.to.clone(),
        state,
        deliveries: message.delivery,
        turn: None,
        sent_at: message.sent_at,
        acked_at: None,
    }
}
