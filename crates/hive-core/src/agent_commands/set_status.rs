//! `set_status`: the line that says what the caller is about (M10).

use std::sync::Arc;

use hive_wire::report::{SetStatus, StatusSet};
use serde_json::json;

use super::Caller;
use crate::{harnesses::check_status_line, server::Reply};

pub(super) fn run(caller: &Caller, command: &SetStatus, reply: Reply<StatusSet>) {
    let text = match check_status_line(&command.text) {
        Ok(text) => text.to_owned(),
        Err(error) => return reply.refuse(error),
    };
    let (agent, owner) = (caller.name.clone(), caller.name.clone());
    let harnesses = Arc::clone(&caller.harnesses);
    caller.broker.submit(
        move |desk| {
            let line = desk.store(|tx| tx.set_status(&agent, &text))?;
            desk.report_agent(&agent, "status_set", &json!({"text": line.text}));
            Ok(line)
        },
        move |outcome| {
            reply.send(outcome.map(|line| {
                harnesses.set_line(&owner, line);
                StatusSet {}
            }));
        },
    );
}
