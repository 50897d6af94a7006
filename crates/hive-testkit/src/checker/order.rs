//! (d) Order: per sender and recipient, within a batch, within a turn, and across requeues.

use std::collections::{BTreeMap, BTreeSet};

use hive_wire::MessageId;

use super::{
    Report, Rule,
    index::{Index, Window},
    story,
};
use crate::history::Nanos;

pub(super) fn check(index: &Index<'_>, report: &mut Report) {
    pairs_keep_order(index, report);
    for op in 0..index.history.ops.len() {
        let batch = index.batch(op);
        if batch.windows(2).any(|pair| pair[0].id >= pair[1].id) {
            let what = "a batch is not in the order of its ids".to_owned();
            report.add(Rule::Order, what, || story::of_ops(index, &[op]));
        }
    }
    nobody_is_overtaken(index, report);
}

#[derive(Clone, Copy)]
struct Sent {
    id: MessageId,
    stored: Window,
    /// When it was first delivered, if that was seen.
    first: Option<Window>,
}

/// Of two messages of one sender to one recipient, the one that was stored before the other was
/// even sent has the lower id and is delivered first.
fn pairs_keep_order(index: &Index<'_>, report: &mut Report) {
    let mut pairs: BTreeMap<(&str, &str), Vec<Sent>> = BTreeMap::new();
    for (id, message) in &index.messages {
        let tag = message.tags.first();
        let Some(payload) = tag.and_then(|tag| index.payloads.get(tag)) else {
            continue;
        };
        let Some(stored) = index.stored(*id) else {
            continue;
        };
        let first = index.leases.get(&(*id, 1)).map(|lease| lease.granted);
        let pair = pairs.entry((payload.from, payload.to)).or_default();
        pair.push(Sent {
            id: *id,
            stored,
            first,
        });
    }
    for ((from, to), mut sent) in pairs {
        let mut stored = sent.clone();
        sent.sort_by_key(|sent| sent.stored.lo);
        stored.sort_by_key(|sent| sent.stored.hi);
        let mut stored = stored.into_iter().peekable();
        let (mut highest, mut latest): (Option<Sent>, Option<(MessageId, Nanos)>) = (None, None);
        for later in sent {
            while let Some(earlier) = stored.next_if(|e| e.stored.before(later.stored)) {
                if highest.is_none_or(|highest| highest.id < earlier.id) {
                    highest = Some(earlier);
                }
                if let Some(first) = earlier.first
                    && latest.is_none_or(|(_, lo)| lo < first.lo)
                {
                    latest = Some((earlier.id, first.lo));
                }
            }
            let by_id = highest
                .filter(|earlier| earlier.id > later.id)
                .map(|e| e.id);
            let delivered = later.first.zip(latest);
            let by_time = delivered.filter(|(first, (_, lo))| first.hi < *lo);
            if let Some(earlier) = by_id.or(by_time.map(|(_, (id, _))| id)) {
                let what = format!(
                    "{from} sent {earlier} to {to} before {}, but it comes after it",
                    later.id
                );
                report.add(Rule::Order, what, || both(index, earlier, later.id));
            }
        }
    }
}

/// A message that waits is not passed over for a younger one. One that certainly lay in the inbox
/// while a receive took a younger one, and was given out later, was passed over.
fn nobody_is_overtaken(index: &Index<'_>, report: &mut Report) {
    let mut agents: BTreeMap<&str, Inbox> = BTreeMap::new();
    for id in index.messages.keys() {
        let Some((_, last)) = index.leases_of(*id).max_by_key(|(_, l)| l.granted.lo) else {
            continue;
        };
        let agent = index.op(last.seen[0]).agent.as_str();
        if let Some(stored) = index.stored(*id) {
            let inbox = agents.entry(agent).or_default();
            inbox.arrivals.push((stored.hi, *id));
            inbox.gone.insert(*id, last.granted.lo);
        }
    }
    for (op, record) in index.history.ops.iter().enumerate() {
        if let Some(youngest) = index.batch(op).iter().max_by_key(|delivery| delivery.id) {
            let granted = index.leases[&(youngest.id, youngest.delivery)].granted;
            let inbox = agents.entry(&record.agent).or_default();
            inbox
                .batches
                .push((granted.lo, granted.hi, youngest.id, op));
        }
    }
    for inbox in agents.values_mut() {
        inbox.sweep(index, report);
    }
}

#[derive(Default)]
struct Inbox {
    /// When each message certainly lay in it.
    arrivals: Vec<(Nanos, MessageId)>,
    /// Until when each message was certainly not settled: it was given out once more after that.
    gone: BTreeMap<MessageId, Nanos>,
    /// Each batch's grant, its youngest message and its receive.
    batches: Vec<(Nanos, Nanos, MessageId, usize)>,
}

impl Inbox {
    fn sweep(&mut self, index: &Index<'_>, report: &mut Report) {
        self.arrivals.sort_unstable();
        self.batches.sort_unstable();
        let mut arrivals = self.arrivals.iter().peekable();
        let mut waiting: BTreeSet<MessageId> = BTreeSet::new();
        for (lo, hi, youngest, op) in &self.batches {
            while let Some((_, id)) = arrivals.next_if(|(at, _)| at < lo) {
                waiting.insert(*id);
            }
            waiting.retain(|id| self.gone[id] > *lo);
            let passed = waiting.range(..youngest).find(|id| {
                let still_there = self.gone[*id] > *hi;
                let taken = index.batch(*op).iter().any(|delivery| delivery.id == **id);
                still_there && !taken && !may_hold(index, *op, Window { lo: *lo, hi: *hi }, **id)
            });
            if let Some(id) = passed {
                let what = format!("message {id} lay in the inbox when {youngest} was taken");
                report.add(Rule::Order, what, || {
                    let mut lines = story::of_ops(index, &[*op]);
                    lines.extend(both(index, *id, *youngest));
                    lines
                });
            }
        }
    }
}

/// Whether a message that is in the inbox may have been held when this receive was granted: by the
/// receive's own turn, or by an open turn when the receive has none.
fn may_hold(index: &Index<'_>, op: usize, granted: Window, id: MessageId) -> bool {
    let turns = &index.about[op];
    if let [turn] = turns[..]
        && index.turns[turn].name.is_none()
    {
        let agent = index.turns[turn].agent;
        let of_agent = index.turns.iter().filter(|turn| turn.agent == agent);
        let mut named = of_agent.filter(|turn| turn.name.is_some());
        return named.any(|turn| {
            let opened = turn.opened.is_some_and(|opened| opened.lo < granted.hi);
            opened && turn.over > granted.lo
        });
    }
    let leases = || index.leases_of(id).map(|(_, lease)| lease);
    if leases().any(|lease| {
        lease.holders.len() == 1 && lease.holders == *turns && granted.before(lease.granted)
    }) {
        return false;
    }
    leases().any(|lease| lease.holders.iter().any(|turn| turns.contains(turn)))
        || turns.iter().any(|turn| {
            let since = index.leaky.get(turn);
            since.is_some_and(|since| *since < granted.hi)
        })
}

fn both(index: &Index<'_>, one: MessageId, other: MessageId) -> Vec<String> {
    let mut lines = story::of_message(index, one);
    lines.extend(story::of_message(index, other));
    lines
}
