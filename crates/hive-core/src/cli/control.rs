//! What the verbs that ask something of a harness share.

use std::time::Duration;

use hive_wire::{
    AgentName,
    client::Client,
    control::ControlAction,
    host::{ControlAgent, ControlState},
    text::printable,
};

use super::{
    failure::{Exit, Failure},
    json,
    out::Out,
};

/// How long a harness may take to answer.
const WAIT_SECONDS: u32 = 30;
/// How long the daemon may take: the wait, and some slack for a busy machine.
const PATIENCE: Duration = Duration::from_secs(WAIT_SECONDS as u64 + 15);

/// Asks the harness of an agent to do something, and says what came of it. What the harness could
/// not do is a conflict.
pub(super) async fn ask(
    name: AgentName,
    action: ControlAction,
    host: &Client,
    out: &mut Out,
) -> Result<(), Failure> {
    let kind = action.kind();
    let command = ControlAgent {
        name: name.clone(),
        action,
        wait_seconds: Some(WAIT_SECONDS),
    };
    let outcome = host.call_within(&command, PATIENCE).await?;
    let note = outcome.note.as_deref().unwrap_or_default();
    if outcome.carried_out == Some(false) {
        let message = format!("{name} could not do it: {}", printable(note));
        return Err(Failure::new(Exit::Conflict, "conflict", message));
    }
    if out.is_json() {
        return out.json(json::Control::new(&name, kind, &outcome));
    }
    match outcome.state {
        ControlState::Done if note.is_empty() => out.line(format_args!("{name}: done")),
        ControlState::Done => out.line(format_args!("{name}: {}", printable(note))),
        ControlState::Queued => {
            out.line(format_args!("{name}: asked"))?;
            out.note("the harness has not answered yet; see `hive-c0re tail`");
            Ok(())
        }
    }
}
