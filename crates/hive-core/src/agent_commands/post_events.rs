//! `post_events`: what happened in a harness, for the event log (T3, T5, T10).

use std::sync::Arc;

use hive_wire::report::{EventsPosted, PostEvents};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: PostEvents, reply: Reply<EventsPosted>) {
    let agent = caller.name.clone();
    let harnesses = Arc::clone(&caller.harnesses);
    caller.tasks.spawn(async move {
        let PostEvents { epoch, events } = command;
        reply.send(harnesses.post_events(&agent, &epoch, events).await);
    });
}
