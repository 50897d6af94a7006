//! Telling of what became of agents and requests: helper events (C10) to the root agent and to
//! whoever asked, and events for live views.

use hive_store::sqlite::Approval;
use hive_wire::{AgentName, host::Runtime};
use serde_json::{Value, json};

use super::state;
use crate::broker::Desk;

/// What happened to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was made.
    Spawned(Result<(), String>),
    /// Everything of it was made anew.
    Rebuilt(Result<(), String>),
    /// It was stopped.
    Killed,
    /// It is gone.
    Destroyed,
}

/// Tells the root agent what happened to another one.
pub(crate) fn happened(desk: &mut Desk<'_>, agent: &AgentName, outcome: &Outcome) {
    let with = |event: &str, result: &Result<(), String>| {
        json!({
            "event": event,
            "agent": agent,
            "ok": result.is_ok(),
            "note": result.as_ref().err().map_or("", String::as_str),
        })
    };
    let event = match outcome {
        Outcome::Spawned(result) => with("spawned", result),
        Outcome::Rebuilt(result) => with("rebuilt", result),
        Outcome::Killed => json!({"event": "killed", "agent": agent}),
        Outcome::Destroyed => json!({"event": "destroyed", "agent": agent}),
    };
    if let Some(root) = root_agent(desk).filter(|root| root != agent) {
        desk.tell(&root, &event);
    }
}

/// Tells the root agent and the requester that a request is settled.
pub(crate) fn resolved(desk: &mut Desk<'_>, approval: &Approval) {
    let event = json!({
        "event": "approval_resolved",
        "approval_id": approval.id,
        "kind": approval.request.kind,
        "agent": approval.request.agent,
        "commit_ref": approval.request.commit_ref,
        "status": state(approval.state),
        "note": approval.note,
    });
    if let Ok(agent) = approval.request.agent.parse::<AgentName>() {
        desk.report_agent(&agent, "approval_resolved", &event);
    }
    let root = root_agent(desk);
    let requester = approval.request.requested_by.parse().ok();
    let requester = requester.filter(|name| Some(name) != root.as_ref() && is_here(desk, name));
    for agent in root.into_iter().chain(requester) {
        tell(desk, &agent, &event);
    }
}

fn tell(desk: &mut Desk<'_>, agent: &AgentName, event: &Value) {
    desk.tell(agent, event);
}

/// The root agent, when it is one that the hive runs: those that run elsewhere get what others send
/// them, and nothing of the host's own.
fn root_agent(desk: &Desk<'_>) -> Option<AgentName> {
    let name: AgentName = desk.config.hive.root_agent.parse().ok()?;
    is_here(desk, &name).then_some(name)
}

fn is_here(desk: &Desk<'_>, name: &AgentName) -> bool {
    let found = desk.roster.find(name.as_str());
    found.is_ok_and(|agent| agent.runtime != Runtime::None)
}
