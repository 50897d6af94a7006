//! `answer`: only whom the question was put to may answer it (M5).

use hive_store::sqlite::QuestionEnd;
use hive_wire::{
    Recipient,
    agent::{Answer, Answered},
};

use super::{Caller, check_text, once::Once};
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: Answer, reply: Reply<Answered>) {
    if let Err(error) = check_text("answer", &command.answer) {
        return reply.refuse(error);
    }
    let agent = caller.name.clone();
    let once = Once::of(&command, command.key.as_ref());
    caller.broker.submit(
        move |desk| {
            once.run(desk, &agent, |desk| {
                let end = QuestionEnd::Answered {
                    by: &Recipient::Agent(agent.clone()),
                    answer: &command.answer,
                };
                desk.end_question(command.question_id, &end)?;
                Ok(Answered {
                    question_id: command.question_id,
                })
            })
        },
        move |outcome| reply.send(outcome),
    );
}
