//! Calls as text, for the evidence of a violation.

use std::fmt::Write;

use hive_wire::MessageId;

use super::index::Index;
use crate::history::{Call, Nanos, Op, Outcome};

/// How many lines of evidence one violation shows at most.
const MAX_LINES: usize = 40;

/// Everything that clients know of a message, in the order it was invoked.
pub(super) fn of_message(index: &Index<'_>, id: MessageId) -> Vec<String> {
    let tags = index.messages.get(&id).map(|message| &message.tags);
    let about = |op: &Op| match &op.call {
        Call::Send { body, outcome, .. } => {
            outcome.ok() == Some(&id) || tags.is_some_and(|tags| tags.contains(&*body.tag))
        }
        Call::Recv { outcome, .. } => outcome
            .ok()
            .is_some_and(|batch| batch.iter().any(|delivery| delivery.id == id)),
        Call::Ack { ids, .. } => ids.contains(&id),
        Call::Confirm { .. } | Call::Requeue { .. } => false,
    };
    let ops = &index.history.ops;
    let about: Vec<_> = (0..ops.len()).filter(|op| about(&ops[*op])).collect();
    let mut lines = of_ops(index, &about);
    if let Some(receipt) = index.receipts.get(&id) {
        let turn = receipt.turn.as_ref().map_or("-", |turn| turn.as_str());
        lines.push(format!(
            "receipt of {id}: {:?}, {} deliveries, turn {turn}",
            receipt.state, receipt.deliveries
        ));
    }
    lines
}

/// Everything that clients know of a turn.
pub(super) fn of_turn(index: &Index<'_>, turn: usize) -> Vec<String> {
    let ops = (0..index.about.len()).filter(|op| index.about[*op].contains(&turn));
    let ends = index.turns[turn]
        .acks
        .iter()
        .chain(&index.turns[turn].requeues);
    let mut ops: Vec<_> = ops.chain(ends.copied()).collect();
    ops.sort_unstable();
    ops.dedup();
    of_ops(index, &ops)
}

/// These calls, in the order they were invoked.
pub(super) fn of_ops(index: &Index<'_>, ops: &[usize]) -> Vec<String> {
    let mut ops = ops.to_vec();
    ops.sort_by_key(|op| index.op(*op).invoke);
    let shown = ops.iter().take(MAX_LINES);
    let mut lines: Vec<_> = shown.map(|op| line(*op, index.op(*op))).collect();
    if ops.len() > MAX_LINES {
        lines.push(format!("… and {} more", ops.len() - MAX_LINES));
    }
    lines
}

fn line(number: usize, op: &Op) -> String {
    let mut text = format!(
        "#{number} client {} {}..{} {}: ",
        op.client,
        time(op.invoke),
        time(op.complete),
        op.agent
    );
    let written = match &op.call {
        Call::Send {
            to,
            key,
            body,
            outcome,
        } => {
            let key = key.as_ref().map_or("-", |key| key.as_str());
            write!(text, "send to={to} key={key} body={}", body.tag)
                .and_then(|()| outcome_to(&mut text, outcome, |id| format!("id {id}")))
        }
        Call::Recv {
            turn,
            req,
            max,
            outcome,
        } => {
            let turn = turn.as_ref().map_or("-", |turn| turn.as_str());
            let req = req.as_ref().map_or("-", |req| req.as_str());
            write!(text, "recv turn={turn} req={req} max={max}").and_then(|()| {
                outcome_to(&mut text, outcome, |batch| {
                    let batch = batch
                        .iter()
                        .map(|d| format!("{}×{} {} from {}", d.id, d.delivery, d.body.tag, d.from));
                    format!("[{}]", batch.collect::<Vec<_>>().join(", "))
                })
            })
        }
        Call::Confirm { turn, req, outcome } => write!(text, "confirm turn={turn} req={req}")
            .and_then(|()| outcome_to(&mut text, outcome, |n| format!("{n} confirmed"))),
        Call::Ack { turn, ids, outcome } => {
            let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
            write!(text, "ack turn={turn} ids=[{}]", ids.join(", "))
                .and_then(|()| outcome_to(&mut text, outcome, closed))
        }
        Call::Requeue {
            turn,
            reason,
            outcome,
        } => write!(text, "requeue turn={turn} reason={reason:?}")
            .and_then(|()| outcome_to(&mut text, outcome, closed)),
    };
    written.expect("a string takes all that is written");
    text
}

fn outcome_to<T>(
    text: &mut String,
    outcome: &Outcome<T>,
    ok: impl Fn(&T) -> String,
) -> std::fmt::Result {
    match outcome {
        Outcome::Ok(reply) => write!(text, " -> {}", ok(reply)),
        Outcome::Refused(code) => write!(text, " -> refused {code:?}"),
        Outcome::Unknown => write!(text, " -> reply lost"),
    }
}

fn closed(closed: &hive_wire::agent::TurnClosed) -> String {
    format!(
        "{:?}, {} acked, {} requeued, {} dead",
        closed.result, closed.acked, closed.requeued, closed.dead
    )
}

/// Seconds with all their digits, since order is what matters.
fn time(at: Nanos) -> String {
    format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)
}
