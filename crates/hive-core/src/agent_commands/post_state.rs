//! `post_state`: how a harness stands (T28), and what that means for those on its credential (T6).

use std::sync::Arc;

use hive_wire::report::{HarnessStatus, PostState, StatePosted};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: PostState, reply: Reply<StatePosted>) {
    let agent = caller.name.clone();
    let harnesses = Arc::clone(&caller.harnesses);
    // Through the broker, so that reports are taken in the order in which they came.
    let concerns_others = command.status == HarnessStatus::RateLimited;
    caller.broker.submit(
        move |desk| {
            let everybody = desk.roster.iter().filter(|_| concerns_others);
            Ok(everybody.cloned().collect::<Vec<_>>())
        },
        move |outcome| {
            reply.send(outcome.map(|everybody| {
                harnesses.post_state(&agent, command, &everybody);
                StatePosted {}
            }));
        },
    );
}
