//! (a) No acknowledged send is lost; (g) receipts say what happened.

use std::collections::BTreeSet;

use hive_wire::{
    MessageId,
    agent::{MessageState, Receipt, TurnResult},
};

use super::{
    Report, Rule,
    acks::{Acked, same_batch},
    index::Index,
    story,
    turns::closed,
};
use crate::history::{Call, Nanos};

pub(super) fn check(index: &Index<'_>, acked: &[Acked], report: &mut Report) {
    let certain: BTreeSet<_> = acked.iter().map(|acked| acked.id).collect();
    let dead: BTreeSet<_> = index.history.dead.iter().copied().collect();
    for (id, message) in &index.messages {
        let end = end_of(index, *id, &dead, certain.contains(id));
        if let Err(what) = end {
            let rule = match message.acknowledged {
                true => Rule::Lost,
                false => Rule::Receipt,
            };
            report.add(rule, what, || story::of_message(index, *id));
        }
        if let Some(receipt) = index.receipts.get(id)
            && let Some(what) = untrue(index, receipt)
        {
            report.add(Rule::Receipt, what, || story::of_message(index, *id));
        }
    }
    for receipt in index.receipts.values() {
        let id = receipt.message_id;
        if !index.messages.contains_key(&id) && !unseen_send(index, receipt) {
            let what = format!("there is a message {id} that nobody can have sent");
            report.add(Rule::Invented, what, || story::of_message(index, id));
        }
    }
}

/// Whether a message ended as it should: acked by somebody who acked it, or as a dead letter.
fn end_of(
    index: &Index<'_>,
    id: MessageId,
    dead: &BTreeSet<MessageId>,
    acked: bool,
) -> Result<(), String> {
    let Some(receipt) = index.receipts.get(&id) else {
        return Err(format!("message {id} is gone without a trace"));
    };
    match receipt.state {
        MessageState::Acked if acked || may_be_acked(index, receipt) => Ok(()),
        MessageState::Acked => Err(format!("message {id} counts as acked, but nobody acked it")),
        MessageState::Dead if !dead.contains(&id) => Err(format!(
            "message {id} is dead, but the operator is not shown it"
        )),
        MessageState::Dead if failures(index, receipt) < index.history.dead_after => Err(format!(
            "message {id} became a dead letter after {} counted failures at most",
            failures(index, receipt)
        )),
        MessageState::Dead => Ok(()),
        state @ (MessageState::Stored | MessageState::Leased | MessageState::Discarded) => Err(
            format!("message {id} is {state:?} after every inbox was drained"),
        ),
    }
}

/// Whether some client may have acked the message under the turn that its receipt names.
fn may_be_acked(index: &Index<'_>, receipt: &Receipt) -> bool {
    let turns = index.turns.iter().enumerate();
    let mut turns =
        turns.filter(|(_, turn)| turn.agent == receipt.to && turn.name == receipt.turn.as_ref());
    if receipt.turn.is_none() {
        return turns.any(|(number, _)| index.leaky.contains_key(&number));
    }
    let Some((number, turn)) = turns.next() else {
        return false;
    };
    let id = receipt.message_id;
    let leases = index.leases_of(id).map(|(_, lease)| lease);
    let held: Vec<_> = leases
        .filter(|lease| lease.holders.contains(&number))
        .collect();
    if held.is_empty() && !index.leaky.contains_key(&number) {
        return false;
    }
    let confirmed = || {
        let confirms = index.confirms.get(&number).into_iter().flatten();
        let mut confirms = confirms.filter(|confirm| {
            let call = &index.op(**confirm).call;
            matches!(call, Call::Confirm { outcome, .. } if outcome.possible())
        });
        confirms.any(|confirm| {
            held.is_empty() || held.iter().any(|lease| same_batch(index, *confirm, lease))
        })
    };
    let mut acks = turn.acks.iter().filter_map(|op| match &index.op(*op).call {
        Call::Ack { ids, outcome, .. } => match outcome.ok().map(|closed| closed.result) {
            Some(TurnResult::Acked | TurnResult::Already) => Some(ids),
            None if outcome.possible() => Some(ids),
            _ => None,
        },
        _ => None,
    });
    acks.any(|ids| ids.contains(&id) || confirmed())
}

/// How many of a message's deliveries may have ended in a failure that counts.
fn failures(index: &Index<'_>, receipt: &Receipt) -> u32 {
    let spared = index.leases_of(receipt.message_id).filter(|(_, lease)| {
        let [turn] = lease.holders[..] else {
            return false;
        };
        let turn = &index.turns[turn];
        let mut ends = turn.acks.iter().chain(&turn.requeues);
        ends.any(|op| {
            let call = &index.op(*op).call;
            let result = closed(call).map(|closed| closed.result);
            match (call, result) {
                (Call::Ack { .. }, Some(TurnResult::Acked | TurnResult::Already)) => true,
                (Call::Requeue { reason, .. }, Some(TurnResult::Requeued)) => !reason.counts(),
                _ => false,
            }
        })
    });
    let spared = u32::try_from(spared.count()).expect("a message has few deliveries");
    receipt.deliveries.saturating_sub(spared)
}

/// What a receipt says wrongly.
fn untrue(index: &Index<'_>, receipt: &Receipt) -> Option<String> {
    let id = receipt.message_id;
    let tag = index.messages.get(&id).and_then(|m| m.tags.first());
    let payload = tag.and_then(|tag| index.payloads.get(tag))?;
    if receipt.from.as_str() != payload.from || receipt.to != payload.to {
        return Some(format!(
            "message {id} went from {} to {}, not from {} to {}",
            payload.from, payload.to, receipt.from, receipt.to
        ));
    }
    let seen = index.leases_of(id).map(|(number, _)| number);
    let highest = seen.max().unwrap_or(0);
    if receipt.deliveries < highest {
        return Some(format!(
            "delivery {highest} of message {id} was seen, and its receipt counts {}",
            receipt.deliveries
        ));
    }
    let unseen = receipt.deliveries as usize - index.leases_of(id).count();
    let lost = index.lost_recvs(payload.to, Nanos::MAX);
    (unseen > lost).then(|| {
        format!("{unseen} deliveries of message {id} were never seen, and only {lost} were lost")
    })
}

/// Whether a message that nobody heard of may come from a send whose reply was lost.
fn unseen_send(index: &Index<'_>, receipt: &Receipt) -> bool {
    let mut payloads = index.payloads.values();
    payloads.any(|payload| {
        payload.stored.is_some()
            && payload.from == receipt.from.as_str()
            && payload.to == receipt.to
    })
}
