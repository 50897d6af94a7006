//! (e) Nothing is invented or altered; (f) a send is one message.

use std::collections::{BTreeMap, BTreeSet};

use hive_wire::MessageId;

use super::{Report, Rule, index::Index, story};
use crate::history::{Call, Delivery};

pub(super) fn check(index: &Index<'_>, report: &mut Report) {
    for op in 0..index.history.ops.len() {
        for delivery in index.batch(op) {
            if let Some((rule, what)) = fault(index, op, delivery) {
                report.add(rule, what, || story::of_message(index, delivery.id));
            }
        }
    }
    one_message_each(index, report);
}

/// What is wrong with one delivered message.
fn fault(index: &Index<'_>, op: usize, delivery: &Delivery) -> Option<(Rule, String)> {
    let (id, agent) = (delivery.id, &index.op(op).agent);
    let Some(payload) = index.payloads.get(&*delivery.body.tag) else {
        let what = format!("{agent} received message {id}, which nobody sent");
        return Some((Rule::Invented, what));
    };
    if payload.from != delivery.from {
        let what = format!(
            "message {id} of {} arrived as one of {}",
            payload.from, delivery.from
        );
        return Some((Rule::Invented, what));
    }
    if payload.to != agent {
        let what = format!("message {id} to {} arrived at {agent}", payload.to);
        return Some((Rule::Invented, what));
    }
    if *payload.body != delivery.body {
        let what = format!("the body of message {id} is not the one that was sent");
        return Some((Rule::Altered, what));
    }
    match payload.stored {
        None => {
            let what = format!("message {id} arrived although its send was refused");
            Some((Rule::Invented, what))
        }
        Some(stored) if stored.lo > index.windows[op].hi => {
            let what = format!("message {id} arrived before it was sent");
            Some((Rule::Invented, what))
        }
        Some(_) => None,
    }
}

fn one_message_each(index: &Index<'_>, report: &mut Report) {
    for (id, message) in &index.messages {
        if message.tags.len() > 1 {
            let what = format!("message {id} is {} different ones", message.tags.len());
            report.add(Rule::Duplicated, what, || story::of_message(index, *id));
        }
    }
    let mut ids: BTreeMap<&str, BTreeSet<MessageId>> = BTreeMap::new();
    for (id, message) in &index.messages {
        for tag in &message.tags {
            ids.entry(tag).or_default().insert(*id);
        }
    }
    for (tag, ids) in ids.iter().filter(|(_, ids)| ids.len() > 1) {
        let what = format!("one send of {tag} became the messages {ids:?}");
        let stories = ids.iter().flat_map(|id| story::of_message(index, *id));
        report.add(Rule::Duplicated, what, || {
            let lines: BTreeSet<_> = stories.collect();
            lines.into_iter().collect()
        });
    }
    one_message_per_key(index, report);
}

/// The same key of the same sender is one message, whatever the bodies say.
fn one_message_per_key(index: &Index<'_>, report: &mut Report) {
    let mut ids: BTreeMap<_, BTreeMap<MessageId, usize>> = BTreeMap::new();
    for (op, record) in index.history.ops.iter().enumerate() {
        if let Call::Send {
            key: Some(key),
            outcome,
            ..
        } = &record.call
            && let Some(id) = outcome.ok()
        {
            let ids = ids.entry((&record.agent, key)).or_default();
            ids.entry(*id).or_insert(op);
        }
    }
    for ((agent, key), ids) in ids.iter().filter(|(_, ids)| ids.len() > 1) {
        let ops: Vec<_> = ids.values().copied().collect();
        let what = format!("the key {key} of {agent} made {} messages", ids.len());
        report.add(Rule::Duplicated, what, || story::of_ops(index, &ops));
    }
}
