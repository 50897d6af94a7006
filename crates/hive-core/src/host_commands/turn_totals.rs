//! `turn_totals`: what the turns add up to, by agent and day (T12).

use std::sync::Arc;

use hive_store::sqlite::TOTAL_DAYS;
use hive_wire::{
    Timestamp, WireError,
    host::{TotalsPage, TurnTotals},
};

use super::Host;

pub(crate) async fn run(host: Arc<Host>, command: TurnTotals) -> Result<TotalsPage, WireError> {
    let agent = match command.name {
        Some(name) => Some(host.find(name).await?.0.name),
        None => None,
    };
    let days = command.days.clamp(1, TOTAL_DAYS);
    let page = host
        .read(move |readers| readers.turn_totals(agent.as_ref(), days, Timestamp::now()))
        .await?;
    Ok(TotalsPage {
        totals: page.rows,
        more: page.more,
    })
}
