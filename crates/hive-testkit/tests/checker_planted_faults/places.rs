//! Places in a history where a fault can go, and the edits that faults share.

use hive_testkit::{
    history::{Call, Delivery, History, Op, Outcome},
    rng::Rng,
};
use hive_wire::{MessageId, TurnId, agent::TurnResult};

/// One of the places, at random.
pub(super) fn one<T>(rng: &mut Rng, places: impl IntoIterator<Item = T>) -> Option<T> {
    let mut places: Vec<_> = places.into_iter().collect();
    (!places.is_empty()).then(|| places.swap_remove(rng.index(places.len())))
}

pub(super) fn turn(name: &str) -> TurnId {
    name.parse().expect("a legal name")
}

pub(super) fn batch(op: &Op) -> &[Delivery] {
    match &op.call {
        Call::Recv { outcome, .. } => outcome.ok().map_or(&[], Vec::as_slice),
        _ => &[],
    }
}

pub(super) fn batch_mut(op: &mut Op) -> &mut Vec<Delivery> {
    match &mut op.call {
        Call::Recv {
            outcome: Outcome::Ok(batch),
            ..
        } => batch,
        _ => panic!("only receives are edited"),
    }
}

/// Every delivery with the receive that returned it.
pub(super) fn sightings(history: &History) -> impl Iterator<Item = (usize, Delivery)> {
    let ops = history.ops.iter().enumerate();
    ops.flat_map(|(op, record)| batch(record).iter().map(move |d| (op, d.clone())))
}

/// Whether no other receive has this one's name.
pub(super) fn asked_once(history: &History, op: usize) -> bool {
    let Call::Recv { req, .. } = &history.ops[op].call else {
        return false;
    };
    let same = |other: &&Op| matches!(&other.call, Call::Recv { req: other, .. } if other == req);
    req.is_none() || history.ops.iter().filter(same).count() == 1
}

/// Whether the message was not seen again with a higher number.
pub(super) fn is_last(history: &History, delivery: &Delivery) -> bool {
    let mut again = sightings(history).filter(|(_, other)| other.id == delivery.id);
    again.all(|(_, other)| other.delivery <= delivery.delivery)
}

/// Whether no lost receive of this agent can have taken messages for the turn of this one.
pub(super) fn nothing_lost_before(history: &History, op: usize) -> bool {
    let this = &history.ops[op];
    let mut lost = history.ops.iter().filter(|other| {
        other.agent == this.agent
            && matches!(&other.call, Call::Recv { outcome, .. } if outcome.lossy())
            && other.invoke < this.complete
    });
    let dead_since = |other: &Op| {
        let mut crashes = history.crashes.iter();
        crashes.any(|crash| other.invoke < *crash && *crash < this.invoke)
    };
    lost.all(|other| dead_since(other) && turn_of(other) != turn_of(this))
}

/// When the message was first sent and when its client knew.
pub(super) fn sent(history: &History, id: MessageId) -> (u64, u64) {
    let body = sightings(history)
        .find(|(_, d)| d.id == id)
        .map(|(_, d)| d.body);
    let sends = history.ops.iter().filter(
        |op| matches!(&op.call, Call::Send { body: sent, .. } if Some(sent) == body.as_ref()),
    );
    sends.fold((u64::MAX, 0), |(lo, hi), op| {
        let end = if op.call.is_unknown() {
            u64::MAX
        } else {
            op.complete
        };
        (lo.min(op.invoke), hi.max(end))
    })
}

/// The messages that a client was told are on disk.
pub(super) fn acknowledged(history: &History) -> Vec<MessageId> {
    let sends = history.ops.iter().filter_map(|op| match &op.call {
        Call::Send { outcome, .. } => outcome.ok().copied(),
        _ => None,
    });
    sends.collect()
}

/// The deliveries that an answered ack listed, and the receives that returned them.
pub(super) fn acked(history: &History) -> Vec<(usize, Delivery)> {
    let acks: Vec<_> = history
        .ops
        .iter()
        .filter_map(|op| match &op.call {
            Call::Ack {
                turn,
                ids,
                outcome: Outcome::Ok(closed),
            } if closed.result == TurnResult::Acked => Some((&op.agent, turn, ids, op.invoke)),
            _ => None,
        })
        .collect();
    sightings(history)
        .filter(|(op, delivery)| {
            let recv = &history.ops[*op];
            acks.iter().any(|(agent, turn, ids, at)| {
                **agent == recv.agent
                    && turn_of(recv) == Some(turn)
                    && ids.contains(&delivery.id)
                    && recv.complete < *at
            })
        })
        .collect()
}

pub(super) fn closed(op: &Op) -> Option<&hive_wire::agent::TurnClosed> {
    match &op.call {
        Call::Ack { outcome, .. } | Call::Requeue { outcome, .. } => outcome.ok(),
        _ => None,
    }
}

/// Agent and turn of every answered end of an open turn, and when that was asked for.
pub(super) fn ended_turns(history: &History) -> impl Iterator<Item = (String, TurnId, u64)> {
    let ends = history.ops.iter().filter(|op| {
        closed(op).is_some_and(|c| matches!(c.result, TurnResult::Acked | TurnResult::Requeued))
    });
    ends.filter_map(|op| Some((op.agent.clone(), turn_of(op)?.clone(), op.invoke)))
}

pub(super) fn turn_of(op: &Op) -> Option<&TurnId> {
    match &op.call {
        Call::Recv { turn, .. } => turn.as_ref().filter(|turn| !turn.is_current()),
        Call::Ack { turn, .. } | Call::Requeue { turn, .. } => Some(turn),
        Call::Confirm { .. } | Call::Send { .. } => None,
    }
}

pub(super) fn received(delivery: Delivery) -> Call {
    Call::Recv {
        turn: Some(turn("ghost")),
        req: None,
        max: 1,
        outcome: Outcome::Ok(vec![delivery]),
    }
}

/// After everything, another turn of the same agent as in `op` is given this.
pub(super) fn receive_at_end(history: &mut History, op: usize, delivery: Delivery) {
    let end = history.ops.iter().map(|op| op.complete).max().unwrap_or(0);
    history.ops.push(Op {
        client: 99,
        agent: history.ops[op].agent.clone(),
        invoke: end + 1,
        complete: end + 2,
        call: received(delivery),
    });
}

pub(super) fn receipt(history: &mut History, id: MessageId) -> &mut hive_wire::agent::Receipt {
    let mut receipts = history.receipts.iter_mut();
    let found = receipts.find(|receipt| receipt.message_id == id);
    found.expect("every message has a receipt")
}

/// Removes a message from everything that receives returned and acks listed.
pub(super) fn forget_deliveries(history: &mut History, id: MessageId) {
    for op in &mut history.ops {
        match &mut op.call {
            Call::Recv {
                outcome: Outcome::Ok(batch),
                ..
            } => batch.retain(|delivery| delivery.id != id),
            Call::Ack { ids, .. } => ids.retain(|listed| *listed != id),
            _ => {}
        }
    }
}
