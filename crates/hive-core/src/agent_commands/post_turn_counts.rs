//! `post_turn_counts`: the counts of one engine run (T12).

use std::sync::Arc;

use hive_store::sqlite::CallCost;
use hive_wire::{
    host::Runtime,
    report::{PostTurnCounts, TurnCountsPosted},
};

use super::Caller;
use crate::{
    budgets::{self, Consequences},
    harnesses::fit_turn_counts,
    server::Reply,
};

pub(super) fn run(caller: &Caller, command: PostTurnCounts, reply: Reply<TurnCountsPosted>) {
    let agent = caller.name.clone();
    let counts = fit_turn_counts(command);
    let own = budgets::of_agent(&caller.config, &caller.approvals.configs.get(&agent));
    let (is_gated, harnesses) = (caller.is_gated, Arc::clone(&caller.harnesses));
    caller.broker.submit(
        move |desk| {
            let limit = desk.config.limits.turns_per_agent;
            let is_new = desk.store(|tx| tx.keep_turn_counts(&agent, &counts, limit))?;
            // Its own word counts where the gateway counts nothing, and where it spends what is
            // the hive's.
            let is_here = desk.roster.find(agent.as_str())?.runtime != Runtime::None;
            if is_gated || !is_new || !is_here {
                return Ok(Consequences::default());
            }
            let cost = CallCost {
                input_tokens: counts.input_tokens,
                output_tokens: counts.output_tokens,
                cache_read_tokens: counts.cache_read_tokens,
                cache_creation_tokens: counts.cache_creation_tokens,
                cost_micro_usd: counts.cost_micro_usd,
            };
            budgets::count(desk, &agent, &own, &cost)
        },
        move |outcome| {
            if let Ok(Consequences {
                pauses: Some(pauses),
                ..
            }) = &outcome
            {
                harnesses.set_pauses(pauses.clone(), &|_| false);
            }
            reply.send(outcome.map(|_| TurnCountsPosted {}));
        },
    );
}
