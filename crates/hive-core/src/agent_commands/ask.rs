//! `ask`: a question to the operator or a peer; the answer comes as a message, or in the reply to
//! one who waits for it (M4).

use std::{sync::Arc, time::Duration};

use hive_store::sqlite::NewQuestion;
use hive_wire::{
    ErrorCode, QuestionId, Recipient, SenderLabel, WireError,
    agent::{Ask, Asked},
    name::OPERATOR,
};
use serde_json::json;

use super::{Caller, check_text, once::Once};
use crate::{broker::Desk, permissions::Grants, server::Reply, waiting};

/// The most suggested answers.
const MAX_OPTIONS: usize = 32;
/// The longest wait for an answer.
const MAX_WAIT: u32 = 3_600;

pub(super) fn run(caller: &Caller, command: Ask, grants: Arc<Grants>, reply: Reply<Asked>) {
    if let Err(error) = check(&command) {
        return reply.refuse(error);
    }
    let asker = caller.name.clone();
    let once = Once::of(&command, command.key.as_ref());
    let config = caller.approvals.configs.get(&asker);
    let waits = command.wait;
    let operation = move |desk: &mut Desk<'_>| {
        let to = command.to.as_deref().unwrap_or(OPERATOR);
        let target = desk.roster.route_question(&asker, &grants, &config, to)?;
        once.run(desk, &asker, |desk| {
            ask(desk, SenderLabel::from(&asker), target, command)
        })
    };
    if waits {
        let (agent, presence) = (caller.name.clone(), reply.presence());
        let operation = |desk: &mut Desk<'_>| operation(desk).map(|asked| asked.question_id);
        let done = move |outcome| reply.send(outcome);
        return caller.broker.ask_and_wait(operation, agent, presence, done);
    }
    caller
        .broker
        .submit(operation, move |outcome| reply.send(outcome));
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
    if command.wait && command.key.is_some() {
        return bad("a question that is waited for has no `key`: hanging up takes it back");
    }
    check_text("question", &command.question)?;
    check_text("options", &command.options.concat())
}

fn ask(
    desk: &mut Desk<'_>,
    asker: SenderLabel,
    target: Recipient,
    command: Ask,
) -> Result<Asked, WireError> {
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
    let circle = closes_circle(desk, &question)?;
    if !circle.is_empty() {
        report_circle(desk, id, &question, &circle);
    }
    Ok(Asked {
        question_id: id,
        circle,
        answer: None,
    })
}

/// Who waits for each other now that this question is asked, if anybody does; said once for each
/// pair, however many questions one has for the other.
fn closes_circle(desk: &mut Desk<'_>, question: &NewQuestion) -> Result<Vec<String>, WireError> {
    let Recipient::Agent(target) = &question.target else {
        return Ok(Vec::new());
    };
    let (pairs, open) = desk.store(|tx| {
        let pairs = tx.open_question_pairs()?;
        Ok((pairs, tx.count_open_between(&question.asker, target)?))
    })?;
    if open > 1 {
        return Ok(Vec::new());
    }
    let found = waiting::circle(&pairs, question.asker.as_str(), target.as_str());
    Ok(found.unwrap_or_default())
}

/// Tells the operator, who can answer for somebody, and the asker, who can take its question back.
fn report_circle(desk: &mut Desk<'_>, id: QuestionId, question: &NewQuestion, circle: &[String]) {
    let event = json!({
        "event": "questions_in_a_circle",
        "question_id": id,
        "circle": circle,
        "hint": "each waits for the next one's answer: answer what you owe, or take a question \
                 back with cancel_loose_end",
    });
    let way: Vec<&str> = circle
        .iter()
        .chain(&circle[..1])
        .map(String::as_str)
        .collect();
    desk.tell_operator(&format!(
        "These agents wait for each other's answers in a circle: {}. Question {id} of {} closed \
         it. `hive-c0re questions` shows what they ask; write to one of them to go on.",
        way.join(" → "),
        question.asker
    ));
    if let Ok(Recipient::Agent(asker)) = question.asker.as_str().parse() {
        desk.report_agent(&asker, "questions_in_a_circle", &event);
        desk.tell(&asker, &event);
    }
}
