//! `spend`: what agents spent at the gateway, by day, and how today's budgets stand.

use clap::Args;
use hive_wire::{
    client::Client,
    host::{BudgetState, DaySpend, Spend},
};

use super::{
    failure::Failure,
    json,
    out::Out,
    pause::who,
    table::{Table, one_line},
    turns::dollars,
};

/// Arguments of `spend`.
#[derive(Debug, Args)]
pub struct SpendArgs {
    /// The last so many days, today included.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=400))]
    days: u32,
}

impl SpendArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let command = Spend {
            days: Some(self.days),
        };
        let page = host.call(&command).await?;
        if out.is_json() {
            return out.json(json::SpendPage::from(&page));
        }
        if page.days.is_empty() {
            out.note("nothing was spent in these days");
        } else {
            out.table(&table(&page.days))?;
        }
        for budget in &page.budgets {
            out.note(budget_line(budget));
        }
        Ok(())
    }
}

fn table(days: &[DaySpend]) -> Table {
    let mut table = Table::new(&[
        "DAY",
        "AGENT",
        "CALLS",
        "IN",
        "CACHE READ",
        "CACHE WRITTEN",
        "OUT",
        "COST",
    ]);
    for day in days {
        table.row([
            one_line(&day.day).as_str().into(),
            day.agent.as_str().into(),
            day.calls.to_string().as_str().into(),
            day.input_tokens.to_string().as_str().into(),
            day.cache_read_tokens.to_string().as_str().into(),
            day.cache_creation_tokens.to_string().as_str().into(),
            day.output_tokens.to_string().as_str().into(),
            dollars(day.cost_micro_usd).as_str().into(),
        ]);
    }
    table
}

/// A budget in one line, such as `ada: 800 of 1000 tokens, $0.1000 of $2.0000 today`.
pub(super) fn budget_line(budget: &BudgetState) -> String {
    let who = who(budget.agent.as_ref());
    let tokens = match budget.tokens_cap {
        Some(cap) => format!("{} of {cap} tokens", budget.tokens),
        None => format!("{} tokens", budget.tokens),
    };
    let money = match budget.cost_cap_micro_usd {
        Some(cap) => format!("{} of {}", dollars(budget.cost_micro_usd), dollars(cap)),
        None => dollars(budget.cost_micro_usd),
    };
    format!("{who}: {tokens}, {money} today")
}
