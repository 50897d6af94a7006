//! What the verbs share that bring agents up and down: how the agent stands afterwards.

use std::time::Duration;

use hive_wire::{
    client::Client,
    command::Command,
    host::{AgentRow, AgentState, Network, Runtime},
};

use super::{
    failure::{Exit, Failure},
    json,
    out::Out,
    table::one_line,
};

/// How long the daemon may take over an agent: it says itself when something takes too long.
const PATIENCE: Duration = Duration::from_secs(900);

/// Asks for something that may take as long as an agent takes to end.
pub(super) async fn ask<C: Command>(host: &Client, command: &C) -> Result<C::Reply, Failure> {
    Ok(host.call_within(command, PATIENCE).await?)
}

/// Shows an agent after something was done to it.
pub(super) fn show(agent: &AgentRow, out: &mut Out) -> Result<(), Failure> {
    let mut fields = vec![
        ("name", agent.name.to_string()),
        ("state", json::agent_state(agent.state).to_owned()),
        ("runtime", runtime(agent.runtime).to_owned()),
        ("socket", one_line(&agent.socket)),
    ];
    fields.extend(agent.pid.map(|pid| ("pid", pid.to_string())));
    out.fields(&fields)?;
    if !agent.note.is_empty() {
        out.note(one_line(&agent.note));
    }
    Ok(())
}

/// A runtime as people are told of it: one that isolates nothing says so every time.
pub(super) fn runtime(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Process => "process (no isolation)",
        other => other.as_str(),
    }
}

/// Where an agent runs, and whether it is on the host's network there.
pub(super) fn place(agent: &AgentRow) -> String {
    let runtime = runtime(agent.runtime);
    match agent.network {
        Some(Network::Host) if agent.runtime != Runtime::Process => {
            format!("{runtime} (host network)")
        }
        _ => runtime.to_owned(),
    }
}

/// Shows how an agent stands that was to run. One that does not is a failure.
pub(super) fn expect_running(agent: &AgentRow, out: &mut Out) -> Result<(), Failure> {
    if agent.state == AgentState::Failed {
        return Err(Failure::new(
            Exit::Failure,
            "agent_failed",
            format!("{} does not run: {}", agent.name, agent.note),
        )
        .hint(format!(
            "see `hive-c0re logs {} --output`; mend it and `start` it",
            agent.name
        )));
    }
    if out.is_json() {
        return out.json(json::Spawned::from(agent));
    }
    show(agent, out)
}
