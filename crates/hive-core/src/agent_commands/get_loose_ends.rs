//! `get_loose_ends`: what is open around the caller or one of its children (M6, B6).

use std::sync::Arc;

use hive_store::sqlite::Approval;
use hive_wire::{
    agent::{GetLooseEnds, LooseEnd, LooseEnds},
    text,
};

use tokio::runtime::Handle;

use super::Caller;
use crate::{companions, permissions::Grants, server::Reply};

/// How much of a question or reminder is shown, so that all of them fit into a line.
const SHOWN: usize = 500;

pub(super) fn run(
    caller: &Caller,
    command: GetLooseEnds,
    grants: Arc<Grants>,
    reply: Reply<LooseEnds>,
) {
    let name = caller.name.clone();
    let (paths, tasks, runtime) = (
        caller.paths.clone(),
        caller.tasks.clone(),
        Handle::current(),
    );
    caller.broker.submit(
        move |desk| {
            let agent = match &command.agent {
                None => name.clone(),
                Some(other) => desk.roster.may_inspect(&name, other, &grants)?,
            };
            let (questions, reminders) =
                desk.store(|tx| Ok((tx.open_questions_of(&agent)?, tx.reminders_of(&agent)?)))?;
            // What waits for the operator is the root agent's to see, among its own affairs.
            let approvals = if grants.is_root() && agent == name {
                desk.store(|tx| tx.pending_approvals())?
            } else {
                Vec::new()
            };
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
            let approvals = approvals.into_iter().filter_map(approval);
            Ok((
                agent,
                questions
                    .chain(reminders)
                    .chain(approvals)
                    .collect::<Vec<_>>(),
            ))
        },
        move |outcome| {
            // The companions' files are read apart from the broker, which waits for no disk.
            let read = move || {
                reply.send(outcome.map(|(agent, mut loose_ends)| {
                    let harness = paths.agent_dirs(&agent).harness;
                    loose_ends.extend(companions::loose_ends(&harness));
                    LooseEnds { loose_ends }
                }));
            };
            tasks.spawn_blocking_on(read, &runtime);
        },
    );
}

fn approval(row: Approval) -> Option<LooseEnd> {
    Some(LooseEnd::Approval {
        approval_id: row.id,
        request: row.request.kind,
        agent: row.request.agent.parse().ok()?,
        requested_by: row.request.requested_by,
        expires_at: row.request.expires_at,
    })
}
