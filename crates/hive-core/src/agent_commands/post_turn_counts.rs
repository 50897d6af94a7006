//! `post_turn_counts`: the counts of one engine run (T12).

use hive_wire::report::{PostTurnCounts, TurnCountsPosted};

use super::Caller;
use crate::{harnesses::fit_turn_counts, server::Reply};

pub(super) fn run(caller: &Caller, command: PostTurnCounts, reply: Reply<TurnCountsPosted>) {
    let agent = caller.name.clone();
    let counts = fit_turn_counts(command);
    caller.broker.submit(
        move |desk| {
            let limit = desk.config.limits.turns_per_agent;
            desk.store(|tx| tx.keep_turn_counts(&agent, &counts, limit))?;
            Ok(TurnCountsPosted {})
        },
        move |outcome| reply.send(outcome),
    );
}
