//! `stats [NAME]`: what the turns add up to, by agent and day (T12).

use clap::Args;
use hive_wire::{
    AgentName,
    client::Client,
    host::{DayTotal, TurnTotals},
};

use super::{
    failure::Failure,
    json,
    out::{Out, style},
    table::{Cell, Table, one_line},
    turns::dollars,
};

/// Arguments of `stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Only this agent.
    name: Option<AgentName>,
    /// The last so many days, today included.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=400))]
    days: u32,
}

impl StatsArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let totals = TurnTotals {
            name: self.name,
            days: self.days,
        };
        let page = host.call(&totals).await?;
        if out.is_json() {
            return out.json(json::TotalList::from(&page));
        }
        if page.totals.is_empty() {
            out.note("no turns in these days");
            return Ok(());
        }
        out.table(&table(&page.totals))?;
        if page.more {
            out.note("there is more: ask for fewer days, or for one agent");
        }
        Ok(())
    }
}

fn table(totals: &[DayTotal]) -> Table {
    let mut table = Table::new(&[
        "DAY",
        "AGENT",
        "TURNS",
        "FAILED",
        "PUT OFF",
        "IN",
        "CACHE READ",
        "CACHE WRITTEN",
        "OUT",
        "COST",
    ]);
    for total in totals {
        table.row([
            one_line(&total.day).as_str().into(),
            total.agent.as_str().into(),
            total.turns.to_string().as_str().into(),
            failures(total.failed),
            total.deferred.to_string().as_str().into(),
            total.input_tokens.to_string().as_str().into(),
            total.cache_read_tokens.to_string().as_str().into(),
            total.cache_creation_tokens.to_string().as_str().into(),
            total.output_tokens.to_string().as_str().into(),
            dollars(total.cost_micro_usd).as_str().into(),
        ]);
    }
    table
}

fn failures(count: u64) -> Cell {
    let style = if count == 0 { style::FAINT } else { style::BAD };
    Cell::styled(&count.to_string(), style)
}
