//! `destroy`: stops an agent, takes it off the registry and closes its socket. Its mail, state and
//! credentials stay for a later one of the same name (C12), unless its files are to be purged.
//!
//! That it is to go is written down first: what a crash interrupts, the next start finishes.

use std::sync::{Arc, PoisonError};

use hive_store::{
    Mail, failpoint,
    sqlite::{AgentRecord, QuestionEnd, Wanted},
};
use hive_wire::{
    AgentName, WireError,
    host::{Destroy, Destroyed},
};
use serde_json::json;

use super::Host;
use crate::{approvals::Outcome, broker::Desk, supervisor::Wish};

pub(super) async fn run(host: Arc<Host>, command: Destroy) -> Result<Destroyed, WireError> {
    let _alone = host.lifecycle.lock().await;
    if host.supervisor.standing(&command.name).is_some() {
        host.supervisor.wish(&command.name, Wish::Destroy).await?;
        failpoint!("destroy::stopped");
    }
    let kept_messages = unregister(&host, &command.name).await?;
    if command.purge {
        host.supervisor.purge(&command.name).await?;
    }
    Ok(Destroyed {
        kept_messages,
        purged: command.purge,
    })
}

/// Nobody will answer what was put to it, or read the answers to what it asked.
fn end_questions(desk: &mut Desk<'_>, name: &AgentName) -> Result<(), WireError> {
    for question in desk.store(|tx| tx.open_questions_of(name))? {
        desk.end_question(question.question_id, &QuestionEnd::Gone)?;
    }
    Ok(())
}

/// Finishes what an earlier daemon began.
pub(crate) async fn finish(host: Arc<Host>, agent: AgentRecord) {
    let name = &agent.name;
    if let Err(error) = host.supervisor.fulfilled(&agent, Wish::Destroy).await {
        tracing::warn!(agent = %name, %error, "it was to be destroyed and does not stop");
        return;
    }
    let _alone = host.lifecycle.lock().await;
    let found = host.find(name.clone()).await;
    // Somebody may have changed their mind.
    if !found.is_ok_and(|(agent, _)| agent.run.wanted == Wanted::Gone) {
        return;
    }
    match unregister(&host, name).await {
        Ok(_) => tracing::info!(agent = %name, "destroyed, as it was asked before"),
        Err(error) => tracing::error!(agent = %name, %error, "cannot destroy it"),
    }
}

/// Takes an agent off the registry of which nothing runs; how many messages stay in its inbox.
async fn unregister(host: &Arc<Host>, name: &AgentName) -> Result<u32, WireError> {
    let agent = name.clone();
    let kept_messages = host
        .broker
        .run(move |desk| {
            desk.roster.find(agent.as_str())?;
            let inbox = desk.store(|tx| {
                tx.destroy_agent(&agent)?;
                // A later one of the name begins with the defaults, whatever this one had.
                tx.revoke_all(&agent)?;
                tx.clear_schedules(&agent)?;
                tx.inbox(&agent.clone().into())
            })?;
            desk.agenda_changed();
            end_questions(desk, &agent)?;
            desk.roster.remove(&agent);
            desk.dismiss(&agent);
            desk.report_agent(&agent, "agent_destroyed", &json!({}));
            Ok(inbox.unread + inbox.inflight)
        })
        .await?;
    failpoint!("destroy::unregistered");
    host.close_socket(name);
    if let Some(gateway) = &host.gateway {
        gateway.close(name);
    }
    host.close_page(name).await;
    host.harnesses.forget(name);
    host.gate.forget(name);
    host.supervisor.let_go(name);
    host.approvals.configs.forget(name);
    host.tell_root(name, Outcome::Destroyed).await;
    failpoint!("destroy::closed");
    Ok(kept_messages)
}

impl Host {
    /// Closes an agent's socket, with every connection to it.
    fn close_socket(&self, name: &AgentName) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = sockets.remove(name);
        drop(sockets);
        if let Some(listener) = listener {
            listener.remove();
        }
    }
}
