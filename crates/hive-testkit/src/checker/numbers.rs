//! (c) Every redelivery is marked, and a repeated receive returns the same batch.

use std::collections::{BTreeMap, BTreeSet};

use hive_wire::{MessageId, ReqId};

use super::{Report, Rule, index::Index, story};
use crate::history::{Call, Nanos};

pub(super) fn check(index: &Index<'_>, report: &mut Report) {
    for id in index.messages.keys() {
        one_lease_per_number(index, *id, report);
        numbers_ascend(index, *id, report);
        gaps_are_explained(index, *id, report);
    }
    replays_agree(index, report);
}

/// No two turns see the same number, no turn sees two numbers, no batch repeats another's message.
fn one_lease_per_number(index: &Index<'_>, id: MessageId, report: &mut Report) {
    let mut turns = BTreeSet::new();
    for (number, lease) in index.leases_of(id) {
        let evidence = || story::of_message(index, id);
        if number == 0 {
            let what = format!("message {id} arrived with delivery number 0");
            report.add(Rule::Unmarked, what, evidence);
        }
        if lease.holders.is_empty() {
            let what = format!("delivery {number} of message {id} went to two turns, or to none");
            report.add(Rule::Unmarked, what, evidence);
        }
        if let [turn] = lease.holders[..]
            && !turns.insert(turn)
        {
            let what = format!("one turn was given message {id} twice");
            report.add(Rule::Unmarked, what, evidence);
        }
        let batches: BTreeSet<_> = lease.seen.iter().map(|op| batch_key(index, *op)).collect();
        if batches.len() > 1 {
            let what = format!("delivery {number} of message {id} came with two receives");
            report.add(Rule::Unmarked, what, evidence);
        }
    }
}

/// What tells the batch of a receive from others: its name, or itself when it has none.
fn batch_key<'h>(index: &Index<'h>, op: usize) -> (Option<&'h ReqId>, usize) {
    match &index.op(op).call {
        Call::Recv { req: Some(req), .. } => (Some(req), 0),
        _ => (None, op),
    }
}

fn numbers_ascend(index: &Index<'_>, id: MessageId, report: &mut Report) {
    let mut latest: Option<(u32, Nanos)> = None;
    for (number, lease) in index.leases_of(id) {
        if let Some((earlier, lo)) = latest
            && lo > lease.granted.hi
        {
            let what = format!("delivery {earlier} of message {id} came after delivery {number}");
            report.add(Rule::Unmarked, what, || story::of_message(index, id));
        }
        let lo = latest.map_or(0, |(_, lo)| lo);
        if latest.is_none() || lease.granted.lo > lo {
            latest = Some((number, lease.granted.lo));
        }
    }
}

/// A number that nobody saw belongs to a receive whose reply was lost.
fn gaps_are_explained(index: &Index<'_>, id: MessageId, report: &mut Report) {
    let Some((last, lease)) = index.leases_of(id).last() else {
        return;
    };
    let missing = last as usize - index.leases_of(id).count().min(last as usize);
    let agent = &index.op(lease.seen[0]).agent;
    let lost = index.lost_recvs(agent, lease.granted.hi);
    if missing > lost {
        let what = format!(
            "message {id} arrived with delivery number {last}; {missing} earlier ones were never \
             seen and only {lost} receives were lost"
        );
        report.add(Rule::Unmarked, what, || story::of_message(index, id));
    }
}

/// All answers to the same receive of the same turn are the same batch.
fn replays_agree(index: &Index<'_>, report: &mut Report) {
    let mut repeats: BTreeMap<(usize, &ReqId), Vec<usize>> = BTreeMap::new();
    for (op, record) in index.history.ops.iter().enumerate() {
        if let Call::Recv {
            req: Some(req),
            outcome,
            ..
        } = &record.call
            && outcome.ok().is_some()
            && let [turn] = index.about[op][..]
        {
            repeats.entry((turn, req)).or_default().push(op);
        }
    }
    for ((_, req), ops) in repeats {
        let Some(first) = ops.iter().find(|op| !index.batch(**op).is_empty()) else {
            continue;
        };
        let differs = |op: &&usize| {
            let (batch, again) = (index.batch(*first), index.batch(**op));
            let hidden = again.is_empty() && index.windows[*first].before(index.windows[**op]);
            batch != again && (hidden || !again.is_empty())
        };
        if ops.iter().any(|op| differs(&op)) {
            let what = format!("receive {req} was answered with different batches");
            report.add(Rule::ReplayDiffers, what, || story::of_ops(index, &ops));
        }
    }
}
