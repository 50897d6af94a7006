//! `kill`, `start` and `restart` of the caller's own children (M11): the same actions as the
//! operator's, for direct children only.

use std::sync::Arc;

use hive_store::sqlite::AgentRecord;
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
                let record: AgentName = once.run(desk, &agent, |desk| {
                    news = Some(wish.write_down(desk, &asked, Some(&agent))?);
                    Ok(asked.clone())
                })?;
                let is_new = news.is_some();
                let record = match news {
                    Some(record) => record,
                    None => desk.roster.find(record.as_str())?.clone(),
                };
                Ok((record, is_new))
            })
            .await?;
        if is_new {
            supervisor.look(&child);
            supervisor.fulfilled(&record, wish).await?;
        }
        Ok::<_, WireError>(stands(&record, |agent| {
            list::stands(&supervisor, &harnesses, agent)
        }))
    };
    caller.tasks.spawn(async move { reply.send(work.await) });
}

fn stands(agent: &AgentRecord, look: impl FnOnce(&AgentRecord) -> list::Stands) -> ChildState {
    let stands = look(agent);
    ChildState {
        name: agent.name.clone(),
        state: stands.state,
        note: stands.note,
    }
}
