//! `list`: the agents and how they stand.

use anstyle::Style;
use clap::Args;
use hive_wire::{
    AgentName,
    client::Client,
    host::{AgentRow, AgentState, Agents, List, Network, Runtime},
};

use super::{
    failure::Failure,
    json, lifecycle,
    out::{Out, style},
    table::{Cell, Table, one_line},
};

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {}

impl ListArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let list = host.call(&List {}).await?;
        if out.is_json() {
            return out.json(json::AgentList::from(&list));
        }
        if list.agents.is_empty() {
            out.note("no agents yet: create one with `hive-c0re spawn NAME`");
            return Ok(());
        }
        out.table(&table(&list))?;
        for note in notes(&list) {
            out.note(note);
        }
        Ok(())
    }
}

fn table(list: &Agents) -> Table {
    let mut table = Table::new(&[
        "NAME", "STATE", "RUNTIME", "ENGINE", "MODEL", "UNREAD", "HELD", "PARENT", "STATUS",
    ]);
    for agent in &list.agents {
        let state = json::agent_state(agent.state);
        let parent = agent.parent.as_ref().map_or("-", AgentName::as_str);
        table.row([
            agent.name.as_str().into(),
            Cell::styled(state, state_style(agent.state)),
            lifecycle::place(agent).as_str().into(),
            engine_name(&agent.engine).into(),
            or_dash(&agent.model).into(),
            count(agent.unread),
            count(agent.inflight),
            parent.into(),
            or_dash(&agent.status).into(),
        ]);
    }
    table
}

/// What the table cannot say loudly enough.
fn notes(list: &Agents) -> Vec<String> {
    let mut notes = Vec::new();
    if list.rehearsed {
        notes.push(
            "the model is REHEARSED: no key was found, so a script answers instead of a model"
                .to_owned(),
        );
    }
    let unprotected = |agent: &&AgentRow| agent.runtime == Runtime::Process;
    if list.agents.iter().any(|agent| unprotected(&agent)) {
        notes
            .push("`process` isolates nothing: such an agent may do what your user may".to_owned());
    }
    let is_open = |agent: &AgentRow| {
        agent.network == Some(Network::Host) && agent.runtime != Runtime::Process
    };
    if list.agents.iter().any(is_open) {
        notes.push("the host's network reaches this machine's own services".to_owned());
    }
    for agent in list.agents.iter().filter(|agent| !agent.note.is_empty()) {
        notes.push(format!("{}: {}", agent.name, one_line(&agent.note)));
    }
    notes
}

/// The program of an engine's command.
fn engine_name(command: &str) -> &str {
    let program = command.split_whitespace().next().unwrap_or_default();
    or_dash(program.rsplit('/').next().unwrap_or_default())
}

fn state_style(state: AgentState) -> Style {
    match state {
        AgentState::Idle => style::GOOD,
        AgentState::Thinking | AgentState::Compacting | AgentState::Starting => style::BUSY,
        AgentState::RateLimited | AgentState::NeedsLogin | AgentState::Paused => style::WARN,
        AgentState::Failed => style::BAD,
        AgentState::Stopped | AgentState::External => style::FAINT,
    }
}

/// A number that stands out when it is not zero.
fn count(number: u32) -> Cell {
    let style = if number == 0 {
        style::FAINT
    } else {
        style::HEAD
    };
    Cell::styled(&number.to_string(), style)
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
