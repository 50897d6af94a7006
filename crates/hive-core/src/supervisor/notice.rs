//! Telling an agent that it was started again (T25).

use hive_store::{Mail, NewMessage};
use hive_wire::{AgentName, SenderLabel, WireError, agent::MessageState};

use super::set_run;
use crate::broker::Desk;

/// What it is told: one line, the same every time.
const TEXT: &str = "you were just (re)started; check your notes in your state directory (/state) \
                    and go on with what you were doing. Your session is intact.";

/// Drops the notice into the agent's inbox, unless the one before is still there: ten restarts
/// cost one turn.
///
/// # Errors
/// The store's refusal.
pub(super) fn leave(desk: &mut Desk<'_>, name: &AgentName) -> Result<(), WireError> {
    let run = desk.roster.find(name.as_str())?.run.clone();
    if let Some(former) = run.notice {
        let receipt = desk.store(|tx| tx.receipt(former))?;
        let state = receipt.map(|receipt| receipt.state);
        if matches!(state, Some(MessageState::Stored | MessageState::Leased)) {
            return Ok(());
        }
    }
    let notice = NewMessage {
        bounded: false,
        ..NewMessage::plain(SenderLabel::system(), name.clone().into(), TEXT.to_owned())
    };
    let sent = desk.send(notice)?;
    let run = hive_store::sqlite::Run {
        notice: Some(sent.message_id),
        ..run
    };
    set_run(desk, name, run).map(|_| ())
}
