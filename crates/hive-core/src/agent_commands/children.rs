//! `kill`, `start` and `restart` of the caller's own children (M11): the same actions as the
//! operator's, for direct children only.

use std::sync::Arc;

use hive_wire::{AgentName, WireError, agent::ChildState};

use super::{Caller, once::Once};
use crate::{host_commands::list, server::Reply, supervisor::Wish};

/// Writes a wish about a child down and waits for what comes of it. One that was written down
/// before, under the same key, is not written again; the answer says how the child stands now.
pub(super) fn wish(
    caller: &Caller,
    child: AgentName,
    wish: Wish,
    once: Once,
    reply: Reply<ChildState>,
) {
    let (agent, supervisor) = (caller.name.clone(), Arc::clone(&caller.supervisor));
    let (broker, harnesses) = (caller.broker.clone(), Arc::clone(&caller.harnesses));
    let asked = child.clone();
    let work = async move {
        let (record, is_new) = broker
            .run(move |desk| {
                desk.roster.child(&agent, &asked)?;
                let mut news = None;
                once.run(desk, &agent, |desk| {
                    news = Some(wish.write_down(desk, &asked, Some(&agent))?);
                    Ok(())
                })?;
                match news {
                    Some(record) => Ok((record, true)),
                    None => Ok((desk.roster.child(&agent, &asked)?.clone(), false)),
                }
            })
            .await?;
        if is_new {
            supervisor.look(&child);
            supervisor.fulfilled(&record, wish).await?;
        }
        let stands = list::stands(&supervisor, &harnesses, &record);
        Ok::<_, WireError>(ChildState {
            name: child,
            state: stands.state,
            note: stands.note,
        })
    };
    caller.tasks.spawn(async move { reply.send(work.await) });
}
