//! `destroy`: stops an agent, takes it off the registry and closes its socket. Its mail, state and
//! credentials stay for a later one of the same name (C12), unless its files are to be purged.

use std::sync::{Arc, PoisonError};

use hive_store::{Mail, sqlite::QuestionEnd};
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
        host.supervisor.wish(&command.name, Wish::Stop).await?;
    }
    let name = command.name.clone();
    let kept_messages = host
        .broker
        .run(move |desk| {
            desk.roster.find(name.as_str())?;
            let inbox = desk.store(|tx| {
                tx.destroy_agent(&name)?;
                // A later one of the name begins with the defaults, whatever this one had.
                tx.revoke_all(&name)?;
                tx.clear_schedules(&name)?;
                tx.inbox(&name.clone().into())
            })?;
            desk.agenda_changed();
            end_questions(desk, &name)?;
            desk.roster.remove(&name);
            desk.dismiss(&name);
            desk.report_agent(&name, "agent_destroyed", &json!({}));
            Ok(inbox.unread + inbox.inflight)
        })
        .await?;
    let listener = host
        .sockets
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&command.name);
    if let Some(listener) = listener {
        listener.remove();
    }
    host.close_page(&command.name);
    host.harnesses.forget(&command.name);
    host.gate.forget(&command.name);
    host.supervisor.let_go(&command.name);
    host.approvals.configs.forget(&command.name);
    host.tell_root(&command.name, Outcome::Destroyed).await;
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
