//! `cancel_loose_end`: takes back a question the caller asked or a reminder it set; the root agent
//! also what waits for the operator's decision (M7).

use hive_store::sqlite::{ApprovalState, QuestionEnd};
use hive_wire::{
    ErrorCode, WireError,
    agent::{CancelLooseEnd, Cancelled, LooseEndId},
};
use serde_json::json;

use super::{Caller, once::Once};
use crate::{permissions::Grants, server::Reply};

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
    caller.broker.submit(
        move |desk| {
            once.run(desk, &agent, |desk| {
                match command.row {
                    LooseEndId::Question { question_id } => {
                        desk.end_question(question_id, &QuestionEnd::Cancelled { by: &agent })?;
                    }
                    LooseEndId::Reminder { reminder_id } => {
                        desk.store(|tx| tx.cancel_reminder(&agent, reminder_id))?;
                        desk.agenda_changed();
                    }
                    LooseEndId::Approval { approval_id } => {
                        let note = format!("cancelled by {agent}");
                        let state = ApprovalState::Cancelled;
                        desk.store(|tx| tx.decide(approval_id, None, state, &note))?;
                        let data = json!({"approval_id": approval_id, "by": agent});
                        desk.report_agent(&agent, "approval_cancelled", &data);
                    }
                }
                Ok(Cancelled {})
            })
        },
        move |outcome| reply.send(outcome),
    );
}
