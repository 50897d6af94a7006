//! `spend`: what everybody spent at the gateway, and how today's budgets stand.

use std::{collections::BTreeMap, sync::Arc};

use hive_store::sqlite::TOTAL_DAYS;
use hive_wire::{
    AgentName, Timestamp, WireError,
    host::{Spend, SpendPage},
};

use super::Host;
use crate::budgets;

pub(crate) async fn run(host: Arc<Host>, command: Spend) -> Result<SpendPage, WireError> {
    let list = host.broker.run(|desk| {
        let names = desk.roster.iter().map(|agent| agent.name.clone());
        Ok(names.collect::<Vec<AgentName>>())
    });
    let names = list.await?;
    let days = command.days.unwrap_or(1).clamp(1, TOTAL_DAYS);
    let config = Arc::clone(&host.config);
    let configs = &host.approvals.configs;
    let budget = |name: AgentName| {
        let budget = budgets::of_agent(&config, &configs.get(&name));
        (name, budget)
    };
    let agents: Vec<_> = names.into_iter().map(budget).collect();
    let read = host.read(move |readers| {
        let now = Timestamp::now();
        let today = readers.spend(1, now)?;
        let mut raises = BTreeMap::new();
        let names = agents.iter().map(|(name, _)| name.as_str());
        for who in names.chain([""]) {
            raises.insert(who, readers.budget_day(who, now)?.raises);
        }
        let raised = |who: &str| raises.get(who).copied().unwrap_or(0);
        Ok(SpendPage {
            budgets: budgets::states(&config, &today, &agents, raised),
            days: readers.spend(days, now)?,
        })
    });
    read.await
}
