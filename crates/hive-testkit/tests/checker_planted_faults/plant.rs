//! The faults: one edit each, at a random place where it is a fault for certain.

use hive_testkit::{
    history::{Call, Delivery, History, Outcome},
    rng::Rng,
};
use hive_wire::{
    MessageId,
    agent::{MessageState, TurnResult},
};

use super::places::{
    acked, acknowledged, asked_once, batch, batch_mut, closed, ended_turns, forget_deliveries,
    is_last, nothing_lost_before, one, receipt, receive_at_end, received, sent, sightings, turn,
    turn_of,
};

pub(super) fn an_acknowledged_send_is_dropped(history: &mut History, rng: &mut Rng) -> bool {
    let Some(id) = one(rng, acknowledged(history)) else {
        return false;
    };
    forget_deliveries(history, id);
    history.receipts.retain(|receipt| receipt.message_id != id);
    true
}

pub(super) fn an_acknowledged_send_stays_undelivered(history: &mut History, rng: &mut Rng) -> bool {
    let Some(id) = one(rng, acknowledged(history)) else {
        return false;
    };
    forget_deliveries(history, id);
    receipt(history, id).state = MessageState::Stored;
    true
}

pub(super) fn an_acked_message_comes_again(history: &mut History, rng: &mut Rng) -> bool {
    deliver_acked_again(history, rng, 1)
}

pub(super) fn an_acked_message_comes_again_unmarked(history: &mut History, rng: &mut Rng) -> bool {
    // Under the same number it is only a fault of numbers, so let it go back further.
    let acked = acked(history).into_iter().filter(|(_, d)| d.delivery > 1);
    let Some((op, mut delivery)) = one(rng, acked) else {
        return false;
    };
    delivery.delivery -= 1;
    receive_at_end(history, op, delivery);
    true
}

pub(super) fn two_messages_of_a_batch_are_swapped(history: &mut History, rng: &mut Rng) -> bool {
    let batches = (0..history.ops.len()).filter(|op| batch(&history.ops[*op]).len() > 1);
    let Some(op) = one(rng, batches) else {
        return false;
    };
    let batch = batch_mut(&mut history.ops[op]);
    let at = rng.index(batch.len() - 1);
    batch.swap(at, at + 1);
    true
}

pub(super) fn two_messages_of_a_sender_are_swapped(history: &mut History, rng: &mut Rng) -> bool {
    let firsts = sightings(history);
    let firsts: Vec<_> = firsts
        .filter(|(op, d)| d.delivery == 1 && asked_once(history, *op))
        .collect();
    let seen = &*history;
    let pairs = firsts.iter().flat_map(|(op, early)| {
        let later = firsts.iter().filter(move |(other, late)| {
            let (one, two) = (&seen.ops[*op], &seen.ops[*other]);
            one.agent == two.agent
                && early.from == late.from
                && one.complete < two.invoke
                && sent(seen, early.id).1 < sent(seen, late.id).0
        });
        later.map(move |(other, late)| ((*op, early.id), (*other, late.id)))
    });
    let Some((early, late)) = one(rng, pairs) else {
        return false;
    };
    let place = |history: &History, (op, id): (usize, MessageId)| {
        let found = batch(&history.ops[op]).iter().position(|d| d.id == id);
        found.expect("it was found there")
    };
    let (at, other) = (place(history, early), place(history, late));
    let one = batch(&history.ops[early.0])[at].clone();
    let two = batch(&history.ops[late.0])[other].clone();
    batch_mut(&mut history.ops[early.0])[at] = two;
    batch_mut(&mut history.ops[late.0])[other] = one;
    true
}

pub(super) fn a_requeued_message_loses_its_place(history: &mut History, rng: &mut Rng) -> bool {
    // A turn opens, takes the requeued message first and a younger one with it; as if it had
    // been given the younger one alone and the older one later.
    let batches = (0..history.ops.len()).filter(|op| {
        let batch = batch(&history.ops[*op]);
        batch.len() > 1
            && batch[0].delivery > 1
            && asked_once(history, *op)
            && nothing_lost_before(history, *op)
            && is_last(history, &batch[0])
    });
    let Some(op) = one(rng, batches) else {
        return false;
    };
    let older = batch_mut(&mut history.ops[op]).remove(0);
    receive_at_end(history, op, older);
    true
}

pub(super) fn a_message_is_doubled_without_a_new_number(
    history: &mut History,
    rng: &mut Rng,
) -> bool {
    let Some((op, delivery)) = one(rng, sightings(history)) else {
        return false;
    };
    receive_at_end(history, op, delivery);
    true
}

pub(super) fn a_first_delivery_is_called_a_later_one(history: &mut History, rng: &mut Rng) -> bool {
    let last = sightings(history).filter(|(op, d)| asked_once(history, *op) && is_last(history, d));
    let Some((op, delivery)) = one(rng, last) else {
        return false;
    };
    let mut found = batch_mut(&mut history.ops[op]).iter_mut();
    let found = found.find(|d| d.id == delivery.id);
    found.expect("it was found there").delivery += 1_000;
    true
}

pub(super) fn a_body_is_altered(history: &mut History, rng: &mut Rng) -> bool {
    alter(history, rng, |delivery| delivery.body.digest ^= 1)
}

pub(super) fn a_message_is_invented(history: &mut History, rng: &mut Rng) -> bool {
    alter(history, rng, |delivery| {
        delivery.id = MessageId(1_000_000);
        delivery.body.tag = "never-said".to_owned();
    })
}

pub(super) fn a_message_comes_from_the_wrong_sender(history: &mut History, rng: &mut Rng) -> bool {
    alter(history, rng, |delivery| {
        let other = if delivery.from == "ada" { "bob" } else { "ada" };
        delivery.from = other.to_owned();
    })
}

pub(super) fn a_message_comes_to_the_wrong_agent(history: &mut History, rng: &mut Rng) -> bool {
    let Some((op, _)) = one(rng, sightings(history)) else {
        return false;
    };
    let op = &mut history.ops[op];
    let other = if op.agent == "ada" { "bob" } else { "ada" };
    op.agent = other.to_owned();
    true
}

pub(super) fn a_refused_send_is_delivered(history: &mut History, rng: &mut Rng) -> bool {
    let Some((_, delivery)) = one(rng, sightings(history)) else {
        return false;
    };
    for op in &mut history.ops {
        if let Call::Send { body, outcome, .. } = &mut op.call
            && *body == delivery.body
        {
            *outcome = Outcome::Refused(hive_wire::ErrorCode::LimitReached);
        }
    }
    true
}

pub(super) fn an_ack_vanishes(history: &mut History, rng: &mut Rng) -> bool {
    let Some((_, delivery)) = one(rng, acked(history)) else {
        return false;
    };
    receipt(history, delivery.id).state = MessageState::Stored;
    true
}

pub(super) fn a_message_is_acked_by_nobody(history: &mut History, rng: &mut Rng) -> bool {
    let dead = history.dead.iter().copied();
    let known = acknowledged(history);
    let Some(id) = one(rng, dead.filter(|id| known.contains(id))) else {
        return false;
    };
    let receipt = receipt(history, id);
    receipt.state = MessageState::Acked;
    receipt.turn = Some(turn("nobody"));
    true
}

pub(super) fn a_key_makes_two_messages(history: &mut History, rng: &mut Rng) -> bool {
    let keyed = history.ops.iter().filter(|op| {
        matches!(
            &op.call,
            Call::Send {
                key: Some(_),
                outcome: Outcome::Ok(_),
                ..
            }
        )
    });
    let Some(mut op) = one(rng, keyed.cloned()) else {
        return false;
    };
    if let Call::Send { outcome, .. } = &mut op.call {
        *outcome = Outcome::Ok(MessageId(1_000_000));
    }
    history.ops.push(op);
    true
}

pub(super) fn a_send_arrives_as_two_messages(history: &mut History, rng: &mut Rng) -> bool {
    let Some((op, mut delivery)) = one(rng, sightings(history)) else {
        return false;
    };
    delivery.id = MessageId(1_000_000);
    delivery.delivery = 1;
    receive_at_end(history, op, delivery);
    true
}

pub(super) fn a_message_is_leased_to_two_turns(history: &mut History, rng: &mut Rng) -> bool {
    // Between a turn's receive and its end there is time for another turn to be given the same.
    let ends: Vec<_> = ended_turns(history).collect();
    let held = sightings(history).flat_map(|(op, delivery)| {
        let this = &history.ops[op];
        let end = ends
            .iter()
            .find(|(agent, turn, _)| *agent == this.agent && turn_of(this) == Some(turn));
        let gap = end.filter(|(_, _, ended)| this.complete + 4 < *ended);
        gap.map(|_| (op, delivery))
    });
    let Some((op, mut delivery)) = one(rng, held) else {
        return false;
    };
    delivery.delivery += 1;
    let mut other = history.ops[op].clone();
    other.invoke = other.complete + 1;
    other.complete += 2;
    other.call = received(delivery);
    history.ops.push(other);
    true
}

pub(super) fn a_receipt_counts_too_few_deliveries(history: &mut History, rng: &mut Rng) -> bool {
    let Some((_, delivery)) = one(rng, sightings(history)) else {
        return false;
    };
    receipt(history, delivery.id).deliveries = delivery.delivery - 1;
    true
}

pub(super) fn a_receipt_counts_too_many_deliveries(history: &mut History, rng: &mut Rng) -> bool {
    let Some(id) = one(rng, acknowledged(history)) else {
        return false;
    };
    receipt(history, id).deliveries += 1_000;
    true
}

pub(super) fn a_letter_is_dead_too_early(history: &mut History, rng: &mut Rng) -> bool {
    let known = acknowledged(history);
    let young = history
        .receipts
        .iter()
        .filter(|receipt| receipt.deliveries < 3);
    let young = young.map(|receipt| receipt.message_id);
    let Some(id) = one(rng, young.filter(|id| known.contains(id))) else {
        return false;
    };
    receipt(history, id).state = MessageState::Dead;
    history.dead.push(id);
    true
}

pub(super) fn a_dead_letter_is_hidden(history: &mut History, rng: &mut Rng) -> bool {
    let known = acknowledged(history);
    let dead = history.dead.iter().copied().filter(|id| known.contains(id));
    let Some(id) = one(rng, dead) else {
        return false;
    };
    history.dead.retain(|dead| *dead != id);
    true
}

pub(super) fn a_replay_differs(history: &mut History, rng: &mut Rng) -> bool {
    let named = (0..history.ops.len()).filter(|op| {
        let this = &history.ops[*op];
        let named = matches!(&this.call, Call::Recv { turn: Some(turn), req: Some(_), .. }
            if !turn.is_current());
        named && !batch(this).is_empty()
    });
    let Some(op) = one(rng, named) else {
        return false;
    };
    let mut again = history.ops[op].clone();
    again.invoke = again.complete + 1;
    again.complete += 2;
    batch_mut(&mut again).pop();
    history.ops.push(again);
    true
}

pub(super) fn a_turn_is_forgotten(history: &mut History, rng: &mut Rng) -> bool {
    edit_end(history, rng, |closed| closed.result = TurnResult::Unknown)
}

pub(super) fn a_turn_counts_wrong(history: &mut History, rng: &mut Rng) -> bool {
    edit_end(history, rng, |closed| {
        closed.acked = 0;
        closed.requeued = 0;
        closed.dead = 0;
    })
}

/// Edits the answer that ended a turn which held something.
fn edit_end(
    history: &mut History,
    rng: &mut Rng,
    edit: fn(&mut hive_wire::agent::TurnClosed),
) -> bool {
    let ends = (0..history.ops.len()).filter(|op| {
        let end = &history.ops[*op];
        let fresh = closed(end).is_some_and(|closed| {
            matches!(closed.result, TurnResult::Acked | TurnResult::Requeued)
        });
        let held = history.ops.iter().any(|recv| {
            recv.agent == end.agent
                && !batch(recv).is_empty()
                && turn_of(recv).is_some()
                && turn_of(recv) == turn_of(end)
                && recv.complete < end.invoke
        });
        fresh && held
    });
    let Some(op) = one(rng, ends) else {
        return false;
    };
    let (Call::Ack { outcome, .. } | Call::Requeue { outcome, .. }) = &mut history.ops[op].call
    else {
        return false;
    };
    if let Outcome::Ok(closed) = outcome {
        edit(closed);
    }
    true
}

fn deliver_acked_again(history: &mut History, rng: &mut Rng, by: u32) -> bool {
    let Some((op, mut delivery)) = one(rng, acked(history)) else {
        return false;
    };
    delivery.delivery += by;
    receive_at_end(history, op, delivery);
    true
}

fn alter(history: &mut History, rng: &mut Rng, edit: fn(&mut Delivery)) -> bool {
    let Some((op, delivery)) = one(rng, sightings(history)) else {
        return false;
    };
    let mut found = batch_mut(&mut history.ops[op]).iter_mut();
    edit(
        found
            .find(|d| d.id == delivery.id)
            .expect("it was found there"),
    );
    true
}
