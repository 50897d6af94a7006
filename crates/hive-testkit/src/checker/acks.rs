//! (b) What was acked stays acked and is not delivered again.

use std::collections::{BTreeMap, BTreeSet};

use hive_wire::{
    MessageId,
    agent::{MessageState, TurnResult},
};

use super::{
    Report, Rule,
    index::{Index, Lease, Turn},
    story,
    turns::closed,
};
use crate::history::{Call, Nanos, Outcome};

/// A message that was acked for certain.
pub(super) struct Acked {
    pub(super) id: MessageId,
    pub(super) turn: usize,
    /// The delivery number under which the turn held it.
    number: u32,
    /// When its client knew.
    at: Nanos,
}

/// What each turn held and confirmed, as far as clients saw it.
pub(super) struct Holdings<'i> {
    held: BTreeMap<usize, Vec<(MessageId, u32, &'i Lease)>>,
    /// Turns that may hold a message which another turn may hold as well.
    unclear: BTreeSet<usize>,
}

impl<'i> Holdings<'i> {
    fn new(index: &'i Index<'_>) -> Self {
        let mut all = Self {
            held: BTreeMap::new(),
            unclear: BTreeSet::new(),
        };
        for ((id, number), lease) in &index.leases {
            match lease.holders[..] {
                [turn] => {
                    let held = all.held.entry(turn).or_default();
                    held.push((*id, *number, lease));
                }
                _ => all.unclear.extend(&lease.holders),
            }
        }
        all
    }

    fn of(&self, turn: usize) -> &[(MessageId, u32, &'i Lease)] {
        self.held.get(&turn).map_or(&[], Vec::as_slice)
    }
}

/// Whether a confirm that certainly came before `at` certainly marked the batch of this lease.
fn confirmed(index: &Index<'_>, turn: usize, lease: &Lease, at: Nanos) -> bool {
    let mut confirms = index.confirms.get(&turn).into_iter().flatten();
    confirms.any(|confirm| {
        let call = &index.op(*confirm).call;
        let marked = matches!(
            call,
            Call::Confirm {
                outcome: Outcome::Ok(1..),
                ..
            }
        );
        let clear = index.about[*confirm].len() == 1;
        marked && clear && index.windows[*confirm].hi < at && same_batch(index, *confirm, lease)
    })
}

/// Whether a confirm names the receive that this lease came with.
pub(super) fn same_batch(index: &Index<'_>, confirm: usize, lease: &Lease) -> bool {
    let Call::Confirm { req: named, .. } = &index.op(confirm).call else {
        return false;
    };
    lease
        .seen
        .iter()
        .any(|op| matches!(&index.op(*op).call, Call::Recv { req: Some(req), .. } if req == named))
}

/// Every message that was acked for certain, turn by turn.
pub(super) fn certain(index: &Index<'_>) -> Vec<Acked> {
    let holdings = Holdings::new(index);
    let turns = index.turns.iter().enumerate();
    turns
        .flat_map(|(number, turn)| match turn.name {
            None => by_hand(index, number, turn),
            Some(_) => by_turn(index, &holdings, number, turn),
        })
        .collect()
}

/// A receive without a turn acks what it returns.
fn by_hand(index: &Index<'_>, number: usize, turn: &Turn<'_>) -> Vec<Acked> {
    let recvs = turn.recvs.iter().flat_map(|op| {
        let batch = index.batch(*op).iter();
        batch.map(|delivery| Acked {
            id: delivery.id,
            turn: number,
            number: delivery.delivery,
            at: index.op(*op).complete,
        })
    });
    recvs.collect()
}

fn by_turn(
    index: &Index<'_>,
    holdings: &Holdings<'_>,
    number: usize,
    turn: &Turn<'_>,
) -> Vec<Acked> {
    let Some((ids, since, at)) = effective_ack(index, turn) else {
        return Vec::new();
    };
    let held = holdings.of(number).iter().filter(|(id, _, lease)| {
        lease.granted.hi < since && (ids.contains(id) || confirmed(index, number, lease, since))
    });
    let acked = held.map(|(id, delivery, _)| Acked {
        id: *id,
        turn: number,
        number: *delivery,
        at,
    });
    acked.collect()
}

/// What the ack that ended a turn certainly listed, when it began at the earliest, and when its
/// client knew. None when the turn was not acked for certain.
fn effective_ack(
    index: &Index<'_>,
    turn: &Turn<'_>,
) -> Option<(BTreeSet<MessageId>, Nanos, Nanos)> {
    let mut effective: Vec<_> = turn
        .acks
        .iter()
        .filter(|op| match &index.op(**op).call {
            Call::Ack { outcome, .. } => match outcome.ok() {
                Some(closed) => {
                    matches!(closed.result, TurnResult::Acked | TurnResult::Already)
                }
                None => outcome.possible(),
            },
            _ => false,
        })
        .collect();
    let result = |op: &usize| closed(&index.op(*op).call).map(|closed| closed.result);
    let at = effective.iter().filter(|op| result(op).is_some());
    let at = at.map(|op| index.op(**op).complete).min()?;
    if effective
        .iter()
        .any(|op| result(op) == Some(TurnResult::Acked))
    {
        effective.retain(|op| result(op) == Some(TurnResult::Acked));
    }
    let since = effective.iter().map(|op| index.op(**op).invoke).min()?;
    let mut listed = effective
        .iter()
        .filter_map(|op| match &index.op(**op).call {
            Call::Ack { ids, .. } => Some(ids.iter().copied().collect::<BTreeSet<_>>()),
            _ => None,
        });
    let first = listed.next()?;
    let ids = listed.fold(first, |all, ids| all.intersection(&ids).copied().collect());
    Some((ids, since, at))
}

pub(super) fn check(index: &Index<'_>, acked: &[Acked], report: &mut Report) {
    for this in acked {
        let (id, name) = (this.id, index.turns[this.turn].name);
        let by = name.map_or_else(
            || "a receive without a turn".to_owned(),
            |t| format!("turn {t}"),
        );
        let evidence = || {
            let mut lines = story::of_message(index, id);
            lines.extend(story::of_turn(index, this.turn));
            lines.dedup();
            lines
        };
        let again = index.leases_of(id).find(|(number, lease)| {
            let later = lease.seen.iter().any(|op| index.windows[*op].lo > this.at);
            *number > this.number || (later && *number != this.number)
        });
        if let Some((number, _)) = again {
            let what =
                format!("message {id} was acked by {by} and came again as delivery {number}");
            report.add(Rule::AckedAgain, what, evidence);
        }
        let stands = index.receipts.get(&id).is_some_and(|receipt| {
            receipt.state == MessageState::Acked && receipt.turn.as_ref() == name
        });
        if !stands {
            let what = format!("message {id} was acked by {by}, but its receipt does not say so");
            report.add(Rule::AckVanished, what, evidence);
        }
    }
    counts_are_true(index, acked, report);
}

/// The counts in the answer that ended a turn are those of what it held.
fn counts_are_true(index: &Index<'_>, acked: &[Acked], report: &mut Report) {
    let holdings = Holdings::new(index);
    let mut acked_by: BTreeMap<usize, u32> = BTreeMap::new();
    for acked in acked {
        *acked_by.entry(acked.turn).or_default() += 1;
    }
    for (number, turn) in index.turns.iter().enumerate() {
        for op in turn.acks.iter().chain(&turn.requeues) {
            let Some(closed) = closed(&index.op(*op).call) else {
                continue;
            };
            if matches!(closed.result, TurnResult::Superseded | TurnResult::Unknown) {
                continue;
            }
            let held = holdings.of(number).len();
            let told = (closed.acked + closed.requeued + closed.dead) as usize;
            let complete =
                !index.leaky.contains_key(&number) && !holdings.unclear.contains(&number);
            let at_least = acked_by.get(&number).copied().unwrap_or(0);
            if told < held || (complete && told != held) || closed.acked < at_least {
                let what = format!(
                    "the end of a turn that held {held} messages and acked at least {at_least} \
                     counts {} acked, {} requeued, {} dead",
                    closed.acked, closed.requeued, closed.dead
                );
                report.add(Rule::TurnEnd, what, || story::of_turn(index, number));
            }
        }
    }
}
