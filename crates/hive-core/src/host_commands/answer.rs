//! `answer`: the operator answers a question that was put to them.

use std::sync::Arc;

use hive_store::sqlite::QuestionEnd;
use hive_wire::{Recipient, WireError, agent::Answered, host::AnswerAsOperator};

use super::Host;
use crate::{agent_commands::check_text, budgets};

pub(super) async fn run(host: Arc<Host>, command: AnswerAsOperator) -> Result<Answered, WireError> {
    check_text("answer", &command.answer)?;
    let id = command.question_id;
    let answer = host.broker.run(move |desk| {
        let end = QuestionEnd::Answered {
            by: &Recipient::Operator,
            answer: &command.answer,
        };
        desk.end_question(id, &end)?;
        budgets::answered(desk, id, &command.answer)
    });
    if let Some(pauses) = answer.await? {
        host.books.forgive();
        host.harnesses.set_pauses(pauses, &|_| false);
    }
    Ok(Answered { question_id: id })
}
