//! `ask`: a question to the operator or a peer; the answer comes as a message, or in the reply to
//! one who waits for it (M4).

use std::time::Duration;

use hive_store::sqlite::NewQuestion;
use hive_wire::{
    ErrorCode, QuestionId, Recipient, SenderLabel, WireError,
    agent::{Ask, Asked},
    name::OPERATOR,
};
use serde_json::json;

use super::{Caller, check_text};
use crate::{broker::Desk, server::Reply};

/// The most suggested answers.
const MAX_OPTIONS: usize = 32;
/// The longest wait for an answer.
const MAX_WAIT: u32 = 3_600;

pub(super) fn run(caller: &Caller, command: Ask, reply: Reply<Asked>) {
    if let Err(error) = check(&command) {
        return reply.refuse(error);
    }
    let asker = caller.name.clone();
    let waits = command.wait;
    let operation = move |desk: &mut Desk<'_>| {
        let target = desk
            .roster
            .route(Some(&asker), command.to.as_deref().unwrap_or(OPERATOR))?;
        ask(desk, SenderLabel::from(&asker), target, command)
    };
    if waits {
        let (agent, presence) = (caller.name.clone(), reply.presence());
        let done = move |outcome| reply.send(outcome);
        return caller.broker.ask_and_wait(operation, agent, presence, done);
    }
    caller.broker.submit(operation, move |outcome| {
        reply.send(outcome.map(|question_id| Asked {
            question_id,
            answer: None,
        }));
    });
}

fn check(command: &Ask) -> Result<(), WireError> {
    let bad = |what: &str| Err(WireError::new(ErrorCode::BadRequest, what));
    if command.question.trim().is_empty() {
        return bad("`question` is empty");
    }
    if command.options.len() > MAX_OPTIONS {
        return bad(&format!("a question has at most {MAX_OPTIONS} options"));
    }
    if command.ttl_seconds == Some(0) {
        return bad("`ttl_seconds` is 0: leave it out for a question that does not expire");
    }
    if command.wait && !(1..=MAX_WAIT).contains(&command.ttl_seconds.unwrap_or(0)) {
        return bad(&format!(
            "`wait` needs `ttl_seconds` from 1 to {MAX_WAIT}: nobody waits for ever"
        ));
    }
    check_text("question", &command.question)?;
    check_text("options", &command.options.concat())
}

fn ask(
    desk: &mut Desk<'_>,
    asker: SenderLabel,
    target: Recipient,
    command: Ask,
) -> Result<QuestionId, WireError> {
    let ttl = command
        .ttl_seconds
        .map(|ttl| Duration::from_secs(ttl.into()));
    let question = NewQuestion {
        asker,
        target,
        question: command.question,
        options: command.options,
        multi: command.multi,
        expires_at: ttl.map(|ttl| desk.now().plus(ttl)),
    };
    let limit = desk.config.limits.questions_per_agent;
    let id = desk.store(|tx| {
        if tx.count_open_questions(&question.asker)? >= limit {
            return Err(hive_store::Refusal::TooMany {
                what: "open questions",
                limit,
            });
        }
        tx.ask(&question)
    })?;
    if question.expires_at.is_some() {
        desk.agenda_changed();
    }
    // The operator sees open questions as such; an agent learns of them by mail.
    if let Recipient::Agent(target) = &question.target {
        let event = json!({
            "event": "question_asked",
            "question_id": id,
            "from": question.asker,
            "question": question.question,
            "options": question.options,
            "multi": question.multi,
            "expires_at": question.expires_at,
        });
        desk.tell(target, &event);
    }
    desk.report_question(id, &question);
    Ok(id)
}
