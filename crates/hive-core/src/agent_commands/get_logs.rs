//! `get_logs`: what the caller's own harness, or a child's, wrote last (M12).

use std::sync::Arc;

use hive_wire::{
    ErrorCode, WireError,
    agent::{GetLogs, Logs},
    host::Runtime,
    text,
    tools::MAX_LOG,
};

use super::Caller;
use crate::{permissions::Grants, server::Reply};

/// How much is read unless told otherwise, in bytes.
const DEFAULT: u32 = 16 * 1024;

pub(super) fn run(caller: &Caller, command: GetLogs, grants: Arc<Grants>, reply: Reply<Logs>) {
    let own = caller.name.clone();
    let (broker, supervisor) = (caller.broker.clone(), Arc::clone(&caller.supervisor));
    let work = async move {
        let agent = broker
            .run(move |desk| {
                let name = match &command.agent {
                    None => own,
                    Some(other) => desk.roster.may_inspect(&own, other, &grants)?,
                };
                desk.roster.find(name.as_str()).cloned()
            })
            .await?;
        let max = command.max_bytes.unwrap_or(DEFAULT).min(MAX_LOG);
        // What runs elsewhere writes elsewhere.
        let output = match agent.runtime {
            Runtime::None => Ok(Vec::new()),
            _ => supervisor.output(&agent, max as usize).await,
        };
        let output = output.map_err(|error| {
            WireError::new(
                ErrorCode::Storage,
                format!("the output of `{}` cannot be read: {error}", agent.name),
            )
            .hint("try again; the operator sees more in the daemon's log")
        })?;
        Ok::<_, WireError>(Logs {
            agent: agent.name,
            output: text::printable(&String::from_utf8_lossy(&output)),
        })
    };
    caller.tasks.spawn(async move { reply.send(work.await) });
}
