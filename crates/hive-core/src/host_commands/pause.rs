//! `pause`: an agent, or the whole hive, begins no turn until it is resumed (C18). A turn that runs
//! ends as usual; with `now` it is stopped and its messages wait again.

use std::sync::Arc;

use hive_wire::{
    ErrorCode, WireError,
    host::{Pause, PauseCause, Paused},
    text,
};
use serde_json::json;

use super::Host;

/// The longest reason.
const MAX_REASON: usize = 200;

pub(crate) async fn run(host: Arc<Host>, command: Pause) -> Result<Paused, WireError> {
    let reason = match command.reason.as_deref().map(str::trim) {
        None | Some("") => "the operator has paused it".to_owned(),
        Some(reason) if reason.chars().any(char::is_control) => {
            return Err(WireError::new(
                ErrorCode::BadRequest,
                "`reason` is one line",
            ));
        }
        Some(reason) => text::shorten(reason, MAX_REASON),
    };
    let (name, now) = (command.name.clone(), command.now);
    let pause = host.broker.run(move |desk| {
        let who = match &name {
            Some(name) => desk.roster.find(name.as_str())?.name.to_string(),
            None => String::new(),
        };
        let changed = desk.store(|tx| tx.pause(&who, PauseCause::Operator, &reason))?;
        let data = json!({"reason": reason, "now": now});
        match &name {
            Some(name) => desk.report_agent(name, "agent_paused", &data),
            None => desk.report_hive("hive_paused", &data),
        }
        Ok((changed, desk.read_pauses()?))
    });
    let (changed, pauses) = pause.await?;
    let rows = pauses.rows();
    let concerned = command.name;
    host.harnesses.set_pauses(pauses, &|agent| {
        now && concerned.as_ref().is_none_or(|name| name == agent)
    });
    Ok(Paused {
        changed,
        pauses: rows,
    })
}
