//! `stop_all`: stops every agent that the hive runs and leaves them stopped (C18).

use std::sync::Arc;

use futures_util::future::join_all;
use hive_wire::{
    WireError,
    host::{AllStopped, StopAll, StopFailure},
};

use super::Host;
use crate::supervisor::Wish;

pub(super) async fn run(host: Arc<Host>, StopAll {}: StopAll) -> Result<AllStopped, WireError> {
    // All wishes are written down before the first is waited for: they are fulfilled side by side,
    // and one that does not stop keeps nobody waiting for the others.
    let agents = host.supervisor.stop_all().await?;
    let ends = agents
        .iter()
        .map(|agent| host.supervisor.fulfilled(agent, Wish::Stop));
    let ends = join_all(ends).await;
    let mut outcome = AllStopped::default();
    for (agent, end) in agents.into_iter().zip(ends) {
        match end {
            Ok(()) => outcome.stopped.push(agent.name),
            Err(error) => outcome.failed.push(StopFailure {
                name: agent.name,
                reason: error.message,
            }),
        }
    }
    Ok(outcome)
}
