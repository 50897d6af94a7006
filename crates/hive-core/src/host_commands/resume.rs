//! `resume`: an agent, or the whole hive, begins turns again (C18). It ends every pause of the one
//! who is named, whatever its cause; an agent's own pause outlasts the hive's, and the other way
//! round.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{Paused, Resume},
};
use serde_json::json;

use super::Host;

pub(crate) async fn run(host: Arc<Host>, command: Resume) -> Result<Paused, WireError> {
    let resume = host.broker.run(move |desk| {
        let who = match &command.name {
            Some(name) => desk.roster.find(name.as_str())?.name.to_string(),
            None => String::new(),
        };
        let changed = desk.store(|tx| tx.resume(&who, None))?;
        match &command.name {
            Some(name) => desk.report_agent(name, "agent_resumed", &json!({})),
            None => desk.report_hive("hive_resumed", &json!({})),
        }
        Ok((changed, desk.read_pauses()?))
    });
    let (changed, pauses) = resume.await?;
    let rows = pauses.rows();
    host.books.forgive();
    host.harnesses.set_pauses(pauses, &|_| false);
    Ok(Paused {
        changed,
        pauses: rows,
    })
}
