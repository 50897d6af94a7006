//! `cancel_loose_end`: takes back a question the caller asked or a reminder it set; the root agent
//! also what waits for the operator's decision (M7).

use hive_store::sqlite::{ApprovalState, QuestionEnd};
use hive_wire::{
    AgentName, ApprovalId, ErrorCode, WireError,
    agent::{CancelLooseEnd, Cancelled, LooseEndId},
};

use tokio::runtime::Handle;

use super::{Caller, once::Once};
use crate::{approvals, broker::Desk, permissions::Grants, server::Reply, spill};

pub(super) fn run(
    caller: &Caller,
    command: CancelLooseEnd,
    grants: &Grants,
    reply: Reply<Cancelled>,
) {
    if matches!(command.row, LooseEndId::Approval { .. }) && !grants.is_root() {
        return reply.refuse(
            WireError::new(
                ErrorCode::Denied,
                "only the root agent may take back what waits for the operator's decision",
            )
            .hint("ask your parent, or the operator"),
        );
    }
    let agent = caller.name.clone();
    let once = Once::of(&command, command.key.as_ref());
    let (tasks, runtime) = (caller.tasks.clone(), Handle::current());
    let state = caller.paths.agent_dirs(&caller.name).state;
    caller.broker.submit(
        move |desk| {
            let mut text = None;
            let cancelled = once.run(desk, &agent, |desk| {
                match command.row {
                    LooseEndId::Question { question_id } => {
                        desk.end_question(question_id, &QuestionEnd::Cancelled { by: &agent })?;
                    }
                    LooseEndId::Reminder { reminder_id } => {
                        text = Some(desk.store(|tx| tx.cancel_reminder(&agent, reminder_id))?);
                        desk.agenda_changed();
                    }
                    LooseEndId::Approval { approval_id } => {
                        cancel_approval(desk, &agent, approval_id)?;
                    }
                }
                Ok(Cancelled {})
            })?;
            Ok((cancelled, text))
        },
        move |outcome| {
            if let Ok((_, Some(text))) = &outcome
                && let Some(file) = spill::file_named(text).map(str::to_owned)
            {
                tasks.spawn_blocking_on(move || spill::remove(&state, &file), &runtime);
            }
            reply.send(outcome.map(|(cancelled, _)| cancelled));
        },
    );
}

/// Takes back a request of the agent's own.
fn cancel_approval(
    desk: &mut Desk<'_>,
    agent: &AgentName,
    id: ApprovalId,
) -> Result<(), WireError> {
    let waiting = desk.store(|tx| tx.pending_approvals())?;
    let by = waiting
        .iter()
        .find(|one| one.id == id)
        .map(|one| one.request.requested_by.as_str());
    if let Some(by) = by.filter(|by| *by != agent.as_str()) {
        return Err(WireError::new(
            ErrorCode::Denied,
            format!("approval {id} was requested by {by}"),
        ));
    }
    let note = format!("cancelled by {agent}");
    let state = ApprovalState::Cancelled;
    let cancelled = desk.store(|tx| tx.decide(id, None, state, &note))?;
    desk.agenda_changed();
    approvals::resolved(desk, &cancelled);
    Ok(())
}
