//! A history sorted for the rules: messages by id, leases by delivery number, turns by agent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hive_wire::{MessageId, ReqId, TurnId, agent::Receipt};

use crate::history::{Body, Call, Delivery, History, Nanos, Op};

/// When something took effect: not before `lo`, not after `hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) lo: Nanos,
    pub(super) hi: Nanos,
}

impl Window {
    /// Whether this certainly came first.
    pub(super) fn before(self, other: Self) -> bool {
        self.hi < other.lo
    }
}

/// All sends of one body.
#[derive(Debug)]
pub(super) struct Payload<'h> {
    pub(super) from: &'h str,
    pub(super) to: &'h str,
    pub(super) body: &'h Body,
    pub(super) sends: Vec<usize>,
    /// Whether a send of it was acknowledged.
    answered: bool,
    /// When it was stored, if it was; none when every send was refused.
    pub(super) stored: Option<Window>,
}

/// A message that is known to exist.
#[derive(Debug, Default)]
pub(super) struct Message<'h> {
    /// The tags it was seen with: those of its sends and of its deliveries.
    pub(super) tags: BTreeSet<&'h str>,
    /// Whether a client was told that it is on disk.
    pub(super) acknowledged: bool,
}

/// One handing over of a message, however often its receive was repeated.
#[derive(Debug)]
pub(super) struct Lease {
    /// The receives that returned it.
    pub(super) seen: Vec<usize>,
    /// The turns that may hold it: one, unless it came through `current` at an unclear time. None
    /// when the receives that returned it have no turn in common.
    pub(super) holders: Vec<usize>,
    /// When it was granted.
    pub(super) granted: Window,
}

/// A turn that a client named, or a receive without one.
#[derive(Debug)]
pub(super) struct Turn<'h> {
    pub(super) agent: &'h str,
    /// None for a receive that acks what it returns.
    pub(super) name: Option<&'h TurnId>,
    pub(super) recvs: Vec<usize>,
    pub(super) acks: Vec<usize>,
    pub(super) requeues: Vec<usize>,
    /// When it was opened, if it was.
    pub(super) opened: Option<Window>,
    /// When it was certainly over.
    pub(super) over: Nanos,
}

/// The history, sorted.
pub(super) struct Index<'h> {
    pub(super) history: &'h History,
    /// When each call took effect.
    pub(super) windows: Vec<Window>,
    pub(super) payloads: BTreeMap<&'h str, Payload<'h>>,
    pub(super) messages: BTreeMap<MessageId, Message<'h>>,
    pub(super) leases: BTreeMap<(MessageId, u32), Lease>,
    pub(super) turns: Vec<Turn<'h>>,
    pub(super) receipts: BTreeMap<MessageId, &'h Receipt>,
    /// For each receive and confirm, the turns it may be about.
    pub(super) about: Vec<Vec<usize>>,
    /// For each turn, the confirms that may be about it.
    pub(super) confirms: BTreeMap<usize, Vec<usize>>,
    /// For each agent, when its receives that may have taken messages unseen began.
    lossy: HashMap<&'h str, Vec<Nanos>>,
    /// The turns that may have taken messages unseen, and since when.
    pub(super) leaky: BTreeMap<usize, Nanos>,
}

impl<'h> Index<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        let mut index = Self {
            history,
            windows: history.ops.iter().map(|op| window(op, history)).collect(),
            payloads: BTreeMap::new(),
            messages: BTreeMap::new(),
            leases: BTreeMap::new(),
            turns: Vec::new(),
            receipts: history.receipts.iter().map(|r| (r.message_id, r)).collect(),
            about: vec![Vec::new(); history.ops.len()],
            confirms: BTreeMap::new(),
            lossy: HashMap::new(),
            leaky: BTreeMap::new(),
        };
        index.add_sends();
        index.add_turns();
        index.resolve_current();
        index.add_leases();
        index.add_lossy();
        index
    }

    pub(super) fn op(&self, op: usize) -> &'h Op {
        &self.history.ops[op]
    }

    /// The batch that a receive returned.
    pub(super) fn batch(&self, op: usize) -> &'h [Delivery] {
        match &self.op(op).call {
            Call::Recv { outcome, .. } => outcome.ok().map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// How many receives of the agent that began before `at` may have taken messages unseen.
    pub(super) fn lost_recvs(&self, agent: &str, at: Nanos) -> usize {
        let began = self.lossy.get(agent).map_or(&[][..], Vec::as_slice);
        began.partition_point(|invoke| *invoke < at)
    }

    /// The leases of a message in the order of their delivery numbers.
    pub(super) fn leases_of(&self, id: MessageId) -> impl Iterator<Item = (u32, &Lease)> {
        let leases = self.leases.range((id, 0)..=(id, u32::MAX));
        leases.map(|((_, number), lease)| (*number, lease))
    }

    /// When a message was stored, narrowed by its first sighting.
    pub(super) fn stored(&self, id: MessageId) -> Option<Window> {
        let tags = &self.messages.get(&id)?.tags;
        let payload = self.payloads.get(tags.first()?)?;
        let mut stored = payload.stored?;
        for (_, lease) in self.leases_of(id) {
            stored.hi = stored.hi.min(lease.granted.hi);
        }
        Some(stored)
    }

    fn add_sends(&mut self) {
        for (op, record) in self.history.ops.iter().enumerate() {
            let Call::Send {
                to, body, outcome, ..
            } = &record.call
            else {
                continue;
            };
            let payload = self.payloads.entry(&body.tag).or_insert_with(|| Payload {
                from: &record.agent,
                to,
                body,
                sends: Vec::new(),
                answered: false,
                stored: None,
            });
            payload.sends.push(op);
            let window = self.windows[op];
            let answered = outcome.ok().is_some();
            if outcome.possible() {
                let stored = payload.stored.get_or_insert(window);
                stored.lo = stored.lo.min(window.lo);
                // One answer dates it; without any, it may be as late as the last send.
                stored.hi = match (payload.answered, answered) {
                    (true, true) => stored.hi.min(window.hi),
                    (true, false) => stored.hi,
                    (false, true) => window.hi,
                    (false, false) => stored.hi.max(window.hi),
                };
                payload.answered |= answered;
            }
            if let Some(id) = outcome.ok() {
                let message = self.messages.entry(*id).or_default();
                message.tags.insert(&body.tag);
                message.acknowledged = true;
            }
        }
    }

    fn add_turns(&mut self) {
        let mut known: HashMap<(&'h str, &'h TurnId), usize> = HashMap::new();
        for (op, record) in self.history.ops.iter().enumerate() {
            let name = match &record.call {
                Call::Send { .. } => continue,
                Call::Recv { turn, .. } => turn.as_ref(),
                Call::Confirm { turn, .. }
                | Call::Ack { turn, .. }
                | Call::Requeue { turn, .. } => Some(turn),
            };
            if name.is_some_and(TurnId::is_current) {
                continue;
            }
            let fresh = self.turns.len();
            let turn = match name {
                Some(name) => *known.entry((&record.agent, name)).or_insert(fresh),
                None => fresh,
            };
            if turn == fresh {
                self.turns.push(Turn {
                    agent: &record.agent,
                    name,
                    recvs: Vec::new(),
                    acks: Vec::new(),
                    requeues: Vec::new(),
                    opened: None,
                    over: Nanos::MAX,
                });
            }
            self.about[op].push(turn);
            match &record.call {
                Call::Recv { .. } => self.turns[turn].recvs.push(op),
                Call::Ack { .. } => self.turns[turn].acks.push(op),
                Call::Requeue { .. } => self.turns[turn].requeues.push(op),
                Call::Send { .. } | Call::Confirm { .. } => {}
            }
        }
        super::turns::date(&self.history.ops, &self.windows, &mut self.turns);
    }

    /// Finds the turns that calls with `current` may have been about.
    fn resolve_current(&mut self) {
        let mut by_agent: HashMap<&'h str, Vec<usize>> = HashMap::new();
        for (index, turn) in self.turns.iter().enumerate() {
            if turn.name.is_some() && turn.opened.is_some() {
                by_agent.entry(turn.agent).or_default().push(index);
            }
        }
        let opened = |turn: usize| self.turns[turn].opened.map_or(0, |window| window.lo);
        // For each turn, when all that opened no later than it were over: a scan back stops there.
        let mut all_over: HashMap<&'h str, Vec<Nanos>> = HashMap::new();
        for (agent, turns) in &mut by_agent {
            turns.sort_by_key(|turn| opened(*turn));
            let mut latest = 0;
            let over = turns.iter().map(|turn| {
                latest = latest.max(self.turns[*turn].over);
                latest
            });
            all_over.insert(agent, over.collect());
        }
        for (op, record) in self.history.ops.iter().enumerate() {
            let turn = match &record.call {
                Call::Recv { turn, .. } => turn.as_ref(),
                Call::Confirm { turn, .. } => Some(turn),
                _ => None,
            };
            let Some(turns) = by_agent.get(record.agent.as_str()) else {
                continue;
            };
            if !turn.is_some_and(TurnId::is_current) {
                continue;
            }
            let window = self.windows[op];
            let end = turns.partition_point(|turn| opened(*turn) < window.hi);
            for at in (0..end).rev() {
                if all_over[record.agent.as_str()][at] <= window.lo {
                    break;
                }
                if self.turns[turns[at]].over > window.lo {
                    self.about[op].push(turns[at]);
                }
            }
        }
    }

    fn add_leases(&mut self) {
        type Repeats<'h> = HashMap<(&'h str, Option<&'h TurnId>, &'h ReqId), Nanos>;
        let mut first_asked: Repeats<'h> = HashMap::new();
        let recvs = self.history.ops.iter().enumerate();
        let recvs = recvs.filter_map(|(op, record)| match &record.call {
            Call::Recv { turn, req, .. } => Some((op, record, turn.as_ref(), req.as_ref())),
            _ => None,
        });
        for (_, record, turn, req) in recvs.clone() {
            if let Some(req) = req {
                let asked = first_asked.entry((&record.agent, turn, req));
                let asked = asked.or_insert(record.invoke);
                *asked = record.invoke.min(*asked);
            }
        }
        for (op, record, turn, req) in recvs {
            let mut granted = self.windows[op];
            if let Some(req) = req {
                granted.lo = first_asked[&(record.agent.as_str(), turn, req)];
            }
            for delivery in self.batch(op) {
                let message = self.messages.entry(delivery.id).or_default();
                message.tags.insert(&delivery.body.tag);
                let lease = self.leases.entry((delivery.id, delivery.delivery));
                let lease = lease.or_insert_with(|| Lease {
                    seen: Vec::new(),
                    holders: self.about[op].clone(),
                    granted,
                });
                lease.seen.push(op);
                lease.holders.retain(|turn| self.about[op].contains(turn));
                lease.granted.lo = lease.granted.lo.min(granted.lo);
                lease.granted.hi = lease.granted.hi.min(granted.hi);
            }
        }
    }

    fn add_lossy(&mut self) {
        for (op, record) in self.history.ops.iter().enumerate() {
            if matches!(&record.call, Call::Recv { outcome, .. } if outcome.lossy()) {
                let began = self.lossy.entry(&record.agent).or_default();
                began.push(record.invoke);
                for turn in &self.about[op] {
                    let since = self.leaky.entry(*turn).or_insert(record.invoke);
                    *since = record.invoke.min(*since);
                }
            }
        }
        for (op, turns) in self.about.iter().enumerate() {
            if matches!(self.history.ops[op].call, Call::Confirm { .. }) {
                for turn in turns {
                    self.confirms.entry(*turn).or_default().push(op);
                }
            }
        }
        for began in self.lossy.values_mut() {
            began.sort_unstable();
        }
    }
}

fn window(op: &Op, history: &History) -> Window {
    let death = history.crashes.partition_point(|crash| *crash < op.invoke);
    let hi = match history.crashes.get(death) {
        _ if !op.call.is_unknown() => op.complete,
        Some(crash) => *crash,
        None => Nanos::MAX,
    };
    Window { lo: op.invoke, hi }
}
