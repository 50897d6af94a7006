//! (h) An inbox has one open turn at a time, and a turn ends once and truthfully.

use std::collections::{BTreeMap, HashMap};

use hive_wire::agent::{TurnClosed, TurnResult};

use super::{
    Report, Rule,
    index::{Index, Turn, Window},
    story,
};
use crate::history::{Call, Nanos, Op, Outcome};

/// Dates the opening and the end of every named turn.
pub(super) fn date(ops: &[Op], windows: &[Window], turns: &mut [Turn<'_>]) {
    for turn in turns.iter_mut() {
        let mut certain: Option<Nanos> = None;
        for op in &turn.recvs {
            let Call::Recv { outcome, .. } = &ops[*op].call else {
                continue;
            };
            if outcome.ok().is_none() && !outcome.lossy() {
                continue;
            }
            let opened = turn.opened.get_or_insert(windows[*op]);
            opened.lo = opened.lo.min(windows[*op].lo);
            opened.hi = opened.hi.max(windows[*op].hi);
            if outcome.ok().is_some() {
                let hi = windows[*op].hi;
                certain = Some(certain.map_or(hi, |certain| certain.min(hi)));
            }
        }
        if let (Some(opened), Some(certain)) = (&mut turn.opened, certain) {
            opened.hi = certain;
        }
        for op in turn.acks.iter().chain(&turn.requeues) {
            if closed(&ops[*op].call).is_some_and(|closed| closed.result != TurnResult::Unknown) {
                turn.over = turn.over.min(windows[*op].hi);
            }
        }
    }
    date_displaced(ops, turns);
}

/// A turn is over once another one, which certainly opened later, is open.
fn date_displaced(ops: &[Op], turns: &mut [Turn<'_>]) {
    let mut openings: HashMap<String, Vec<(Nanos, Nanos)>> = HashMap::new();
    for turn in turns.iter().filter(|turn| turn.name.is_some()) {
        let answered = |op: &usize| {
            matches!(
                &ops[*op].call,
                Call::Recv {
                    outcome: Outcome::Ok(_),
                    ..
                }
            )
        };
        if let Some(opened) = turn.opened
            && turn.recvs.iter().any(answered)
        {
            let openings = openings.entry(turn.agent.to_owned()).or_default();
            openings.push((opened.lo, opened.hi));
        }
    }
    for openings in openings.values_mut() {
        openings.sort_unstable();
        let mut soonest = Nanos::MAX;
        for (_, hi) in openings.iter_mut().rev() {
            soonest = soonest.min(*hi);
            *hi = soonest;
        }
    }
    for turn in turns.iter_mut().filter(|turn| turn.name.is_some()) {
        if let (Some(opened), Some(openings)) = (turn.opened, openings.get(turn.agent)) {
            let next = openings.partition_point(|(lo, _)| *lo <= opened.hi);
            if let Some((_, hi)) = openings.get(next) {
                turn.over = turn.over.min(*hi);
            }
        }
    }
}

/// The answer to an ack or a requeue.
pub(super) fn closed(call: &Call) -> Option<&TurnClosed> {
    match call {
        Call::Ack { outcome, .. } | Call::Requeue { outcome, .. } => outcome.ok(),
        _ => None,
    }
}

pub(super) fn check(index: &Index<'_>, report: &mut Report) {
    let open: Vec<_> = (0..index.turns.len())
        .map(|turn| seen_open(index, turn))
        .collect();
    one_open_turn(index, &open, report);
    one_holder(index, &open, report);
    for (turn, open) in open.iter().enumerate() {
        if index.turns[turn].name.is_some()
            && let Some(what) = lie(index, turn, open)
        {
            report.add(Rule::TurnEnd, what, || story::of_turn(index, turn));
        }
    }
}

/// When the turn was certainly open: at each new batch, and when it was ended.
fn seen_open(index: &Index<'_>, turn: usize) -> Vec<Window> {
    let turn = &index.turns[turn];
    let mut seen = Vec::new();
    let mut repeats: BTreeMap<_, Window> = BTreeMap::new();
    for op in &turn.recvs {
        let Call::Recv { req, outcome, .. } = &index.op(*op).call else {
            continue;
        };
        let window = index.windows[*op];
        match (req, outcome) {
            (Some(req), Outcome::Ok(batch)) if !batch.is_empty() => {
                let first = repeats.entry(req).or_insert(window);
                first.lo = first.lo.min(window.lo);
                first.hi = first.hi.min(window.hi);
            }
            (_, Outcome::Ok(_)) => seen.push(window),
            (_, Outcome::Refused(_) | Outcome::Unknown) => {}
        }
    }
    seen.extend(repeats.into_values());
    for op in turn.acks.iter().chain(&turn.requeues) {
        let ended =
            |closed: &TurnClosed| matches!(closed.result, TurnResult::Acked | TurnResult::Requeued);
        if closed(&index.op(*op).call).is_some_and(ended) {
            seen.push(index.windows[*op]);
        }
    }
    seen
}

/// No turn was open both before and after another one was.
fn one_open_turn(index: &Index<'_>, open: &[Vec<Window>], report: &mut Report) {
    let mut agents: BTreeMap<&str, Vec<(Window, usize)>> = BTreeMap::new();
    for (turn, seen) in open.iter().enumerate() {
        if index.turns[turn].name.is_some() {
            let all = agents.entry(index.turns[turn].agent).or_default();
            all.extend(seen.iter().map(|window| (*window, turn)));
        }
    }
    for all in agents.values_mut() {
        all.sort_by_key(|(window, _)| window.lo);
    }
    for (turn, seen) in open.iter().enumerate() {
        let since = seen.iter().map(|window| window.hi).min();
        let until = seen.iter().map(|window| window.lo).max();
        let (Some(since), Some(until)) = (since, until) else {
            continue;
        };
        let Some(all) = agents.get(index.turns[turn].agent) else {
            continue;
        };
        let from = all.partition_point(|(window, _)| window.lo <= since);
        let within = all[from..]
            .iter()
            .take_while(|(window, _)| window.lo < until);
        let mut others = within.filter(|(window, other)| *other != turn && window.hi < until);
        if let Some((_, other)) = others.next() {
            let what = format!("{} had two open turns at once", index.turns[turn].agent);
            report.add(Rule::TwoHolders, what, || {
                let mut lines = story::of_turn(index, turn);
                lines.extend(story::of_turn(index, *other));
                lines
            });
        }
    }
}

/// A turn that lost a message to a later one is not open any more.
fn one_holder(index: &Index<'_>, open: &[Vec<Window>], report: &mut Report) {
    for id in index.messages.keys() {
        let leases: Vec<_> = index.leases_of(*id).map(|(_, lease)| lease).collect();
        for pair in leases.windows(2) {
            let ([earlier], [later]) = (&pair[0].holders[..], &pair[1].holders[..]) else {
                continue;
            };
            let last_open = open[*earlier].iter().map(|window| window.lo).max();
            if earlier != later && last_open.is_some_and(|lo| lo > pair[1].granted.hi) {
                let what = format!("message {id} was held by two open turns");
                report.add(Rule::TwoHolders, what, || {
                    let mut lines = story::of_message(index, *id);
                    lines.extend(story::of_turn(index, *earlier));
                    lines
                });
            }
        }
    }
}

/// What is untrue in the answers about a turn's end.
fn lie(index: &Index<'_>, turn: usize, open: &[Window]) -> Option<String> {
    let this = &index.turns[turn];
    let name = this.name?;
    let answer = |op: &usize| closed(&index.op(*op).call).map(|closed| closed.result);
    let count = |ops: &[usize], results: &[TurnResult]| {
        let found = ops.iter().filter_map(answer);
        found.filter(|result| results.contains(result)).count()
    };
    let acked = count(&this.acks, &[TurnResult::Acked, TurnResult::Already]);
    let requeued = count(&this.requeues, &[TurnResult::Requeued, TurnResult::Already]);
    if acked > 0 && requeued > 0 {
        return Some(format!("turn {name} was acked and requeued"));
    }
    let ends = [TurnResult::Acked, TurnResult::Requeued];
    if count(&this.acks, &ends) + count(&this.requeues, &ends) > 1 {
        return Some(format!("turn {name} was ended twice"));
    }
    if acked + requeued > 0 && this.opened.is_none() {
        return Some(format!("turn {name} was ended and never opened"));
    }
    let told_over = this.acks.iter().chain(&this.requeues);
    let told_over = told_over.filter(|op| answer(op).is_some_and(|r| r != TurnResult::Unknown));
    let told_over = told_over.map(|op| index.windows[*op].hi).min();
    if told_over.is_some_and(|over| open.iter().any(|window| window.lo > over)) {
        return Some(format!("turn {name} went on after its end"));
    }
    let kinds = [(&this.acks, &this.requeues), (&this.requeues, &this.acks)];
    kinds.into_iter().find_map(|(same, other)| {
        let mut same_ops = same.iter();
        same_ops.find_map(|op| untold(index, turn, *op, same, other))
    })
}

/// What is untrue in one answer, given the calls that would end the turn the same or another way.
fn untold(
    index: &Index<'_>,
    turn: usize,
    op: usize,
    same: &[usize],
    other: &[usize],
) -> Option<String> {
    let this = &index.turns[turn];
    let name = this.name?;
    let window = index.windows[op];
    let possible = |op: &usize| match &index.op(*op).call {
        Call::Ack { outcome, .. } | Call::Requeue { outcome, .. } => outcome.possible(),
        _ => false,
    };
    let may_come_first =
        |before: &usize| *before != op && possible(before) && index.windows[*before].lo < window.hi;
    match closed(&index.op(op).call)?.result {
        TurnResult::Unknown => {
            let had_some = |recv: &&usize| {
                !index.batch(**recv).is_empty() && index.windows[**recv].before(window)
            };
            let forgotten = this.recvs.iter().find(had_some).is_some();
            forgotten.then(|| format!("turn {name} was open and is called unknown"))
        }
        TurnResult::Already => {
            let explained = same.iter().any(may_come_first);
            (!explained).then(|| format!("turn {name} is called ended, but nobody ended it"))
        }
        TurnResult::Superseded => {
            let displaced = index.turns.iter().enumerate().any(|(index, next)| {
                index != turn
                    && next.agent == this.agent
                    && next
                        .opened
                        .zip(this.opened)
                        .is_some_and(|(next, this)| next.lo < window.hi && next.hi > this.lo)
            });
            let explained = displaced || other.iter().any(may_come_first);
            (!explained).then(|| format!("turn {name} is called superseded, but nothing ended it"))
        }
        TurnResult::Acked | TurnResult::Requeued => None,
    }
}
