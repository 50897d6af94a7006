//! `list`: the agents and how they stand.

use anstyle::Style;
use clap::Args;
use hive_wire::{
    AgentName,
    client::Client,
    host::{AgentState, Agents, List},
};

use super::{
    failure::Failure,
    json,
    out::{Out, style},
    table::{Cell, Table},
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
        out.table(&table(&list))
    }
}

fn table(list: &Agents) -> Table {
    let mut table = Table::new(&[
        "NAME", "STATE", "RUNTIME", "MODEL", "UNREAD", "HELD", "PARENT", "STATUS",
    ]);
    for agent in &list.agents {
        let state = json::agent_state(agent.state);
        let parent = agent.parent.as_ref().map_or("-", AgentName::as_str);
        table.row([
            agent.name.as_str().into(),
            Cell::styled(state, state_style(agent.state)),
            agent.runtime.as_str().into(),
            or_dash(&agent.model).into(),
            count(agent.unread),
            count(agent.inflight),
            parent.into(),
            or_dash(&agent.status).into(),
        ]);
    }
    table
}

fn state_style(state: AgentState) -> Style {
    match state {
        AgentState::External => style::FAINT,
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
