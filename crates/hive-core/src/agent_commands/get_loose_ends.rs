//! `get_loose_ends`: open questions and reminders of the caller or one of its children (M6).

use hive_wire::{
    agent::{GetLooseEnds, LooseEnd, LooseEnds},
    text,
};

use super::Caller;
use crate::server::Reply;

/// How much of a question or reminder is shown, so that all of them fit into a line.
const SHOWN: usize = 500;

pub(super) fn run(caller: &Caller, command: GetLooseEnds, reply: Reply<LooseEnds>) {
    let name = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            let agent = match &command.agent {
                None => name,
                Some(other) => desk.roster.may_inspect(&name, other)?,
            };
            let (questions, reminders) =
                desk.store(|tx| Ok((tx.open_questions_of(&agent)?, tx.reminders_of(&agent)?)))?;
            let questions = questions.into_iter().map(|row| LooseEnd::Question {
                question_id: row.question_id,
                asker: row.asker,
                target: row.target,
                question: text::shorten(&row.question, SHOWN),
                expires_at: row.expires_at,
            });
            let reminders = reminders.into_iter().map(|reminder| LooseEnd::Reminder {
                reminder_id: reminder.id,
                message: text::shorten(&reminder.body, SHOWN),
                due_at: reminder.due_at,
            });
            Ok(LooseEnds {
                loose_ends: questions.chain(reminders).collect(),
            })
        },
        move |outcome| reply.send(outcome),
    );
}
