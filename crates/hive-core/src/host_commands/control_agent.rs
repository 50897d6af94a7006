//! `control_agent`: asks an agent's harness to do something (C18, T19, T23).

use std::{sync::Arc, time::Duration};

use hive_wire::{
    ErrorCode, WireError,
    agent::MAX_WAIT_SECONDS,
    control::ControlAction,
    host::{ControlAgent, ControlOutcome},
};
use serde_json::json;

use super::Host;

/// The longest name of a model.
const MAX_MODEL: usize = 100;
/// The longest line for a login.
const MAX_INPUT: usize = 4_096;

pub(crate) async fn run(
    host: Arc<Host>,
    command: ControlAgent,
) -> Result<ControlOutcome, WireError> {
    check(&command.action)?;
    let (name, kind) = (command.name.clone(), command.action.kind());
    host.broker
        .run(move |desk| {
            desk.roster.find(name.as_str())?;
            desk.report_agent(&name, "control_asked", &json!({"action": kind}));
            Ok(())
        })
        .await?;
    let wait = command.wait_seconds.unwrap_or(0).min(MAX_WAIT_SECONDS);
    let wait = Duration::from_secs(wait.into());
    // Cancel-safe: a request that nobody waits for is carried out all the same.
    tokio::select! {
        outcome = host.harnesses.ask(&command.name, command.action, wait) => outcome,
        () = host.stop.cancelled() => {
            Err(WireError::new(ErrorCode::ShuttingDown, "the daemon is stopping"))
        }
    }
}

/// Refuses what only the host itself asks, and texts that no harness could use.
fn check(action: &ControlAction) -> Result<(), WireError> {
    let refuse = |why: String| Err(WireError::new(ErrorCode::BadRequest, why));
    match action {
        ControlAction::Hold { .. }
        | ControlAction::Release
        | ControlAction::ToolGroups { .. }
        | ControlAction::Pause { .. }
        | ControlAction::Resume
        | ControlAction::Stop => {
            let kind = action.kind();
            Err(
                WireError::new(ErrorCode::BadRequest, format!("`{kind}` is the host's own")).hint(
                    "`lift` ends a wait, `pause` and `resume` pause an agent, `kill` stops it",
                ),
            )
        }
        ControlAction::Model { name } => {
            let is_word = name.chars().all(|c| !c.is_control() && !c.is_whitespace());
            if name.is_empty() || name.len() > MAX_MODEL || !is_word || name.starts_with('-') {
                return refuse(format!("a model is one word of at most {MAX_MODEL} bytes"));
            }
            Ok(())
        }
        ControlAction::LoginInput { text } => {
            if text.len() > MAX_INPUT || text.chars().any(char::is_control) {
                return refuse(format!("`text` is one line of at most {MAX_INPUT} bytes"));
            }
            Ok(())
        }
        ControlAction::Interrupt
        | ControlAction::Compact
        | ControlAction::NewSession
        | ControlAction::LoginStart
        | ControlAction::LoginCancel => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_cannot_smuggle_flags_lines_or_holds() {
        let model = |name: &str| ControlAction::Model { name: name.into() };
        let input = |text: &str| ControlAction::LoginInput { text: text.into() };
        for good in [
            ControlAction::Interrupt,
            model("sonnet"),
            model("claude-opus-4-5[1m]"),
            input("code#state"),
            input(""),
        ] {
            assert!(check(&good).is_ok(), "{good:?}");
        }
        for bad in [
            ControlAction::Stop,
            ControlAction::Release,
            ControlAction::Resume,
            model(""),
            model("--settings=x"),
            model("a b"),
            model("a\nb"),
            model(&"x".repeat(101)),
            input("a\nb"),
            input(&"x".repeat(5_000)),
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
