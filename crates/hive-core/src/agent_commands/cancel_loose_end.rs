//! `cancel_loose_end`: takes back a question the caller asked or a reminder it set (M7).

use hive_store::sqlite::QuestionEnd;
use hive_wire::agent::{CancelLooseEnd, Cancelled, LooseEndId};
use hive_wire::{ErrorCode, WireError};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: CancelLooseEnd, reply: Reply<Cancelled>) {
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            match command.row {
                LooseEndId::Question { question_id } => {
                    desk.end_question(question_id, &QuestionEnd::Cancelled { by: &agent })?;
                }
                LooseEndId::Reminder { reminder_id } => {
                    desk.store(|tx| tx.cancel_reminder(&agent, reminder_id))?;
                    desk.agenda_changed();
                }
                LooseEndId::Approval { .. } => {
                    return Err(WireError::new(
                        ErrorCode::Unsupported,
                        "requests cannot be taken back yet",
                    ));
                }
            }
            Ok(Cancelled {})
        },
        move |outcome| reply.send(outcome),
    );
}
