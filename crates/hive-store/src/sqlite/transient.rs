//! Messages that never touch the disk: handed over at most once, lost with the process.
//!
//! They belong to a turn like any other message, so that a repeated receive brings them again and
//! an ack counts them; but a turn that gives its messages back does not bring these back.

use std::collections::{BTreeSet, HashMap, VecDeque};

use hive_wire::{MessageId, ReqId, Timestamp, agent::Message, text};

use super::mail::{ENVELOPE_BYTES, count};

/// The most transient messages of one agent, waiting or held by its turn.
pub(super) const MAX_WAITING: u32 = 1_000;
/// The most bytes of bodies they may have together.
const MAX_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Transients {
    next_id: i64,
    waiting: HashMap<Box<str>, VecDeque<Message>>,
    held: HashMap<Box<str>, Vec<Held>>,
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
                    if held && let Some(all) = self.held.get_mut(&agent) {
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

    /// The turn ended: what it held is gone. Says how many were listed or confirmed.
    pub(super) fn end(&mut self, agent: &str, ids: &BTreeSet<MessageId>) -> u32 {
        let Some(held) = self.held.remove(agent) else {
            return 0;
        };
        let handled = |held: &&Held| held.confirmed || ids.contains(&held.message.id);
        let acked = count(held.iter().filter(handled).count());
        let agent = agent.into();
        self.done.push(Done::Ended { agent, held });
        acked
    }
}
