//! `set_status`: the line that says what the caller is about (M10).

use std::sync::Arc;

use hive_wire::report::{SetStatus, StatusSet};
use serde_json::json;

use super::{Caller, once::Once};
use crate::{harnesses::check_status_line, server::Reply};

pub(super) fn run(caller: &Caller, command: &SetStatus, reply: Reply<StatusSet>) {
    let text = match check_status_line(&command.text) {
        Ok(text) => text.to_owned(),
        Err(error) => return reply.refuse(error),
    };
    let (agent, owner) = (caller.name.clone(), caller.name.clone());
    let harnesses = Arc::clone(&caller.harnesses);
    let once = Once::of(command, command.key.as_ref());
    caller.broker.submit(
        move |desk| {
            let mut news = None;
            once.run(desk, &agent, |desk| {
                let line = desk.store(|tx| tx.set_status(&agent, &text))?;
                desk.report_agent(&agent, "status_set", &json!({"text": line.text}));
                news = Some(line);
                Ok(StatusSet {})
            })?;
            Ok(news)
        },
        move |outcome| {
            reply.send(outcome.map(|news| {
                if let Some(line) = news {
                    harnesses.set_line(&owner, line);
                }
                StatusSet {}
            }));
        },
    );
}
