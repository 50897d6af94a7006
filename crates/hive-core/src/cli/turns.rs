//! `turns NAME`: the turns of an agent, newest first (T12).

use anstyle::Style;
use clap::Args;
use hive_wire::{
    AgentName, Timestamp, TurnRowId,
    client::Client,
    host::{TurnRow, Turns},
    report::{DEFERRED_OUTCOMES, GOOD_OUTCOMES},
};

use super::{
    age::age,
    failure::Failure,
    json,
    out::{Out, style},
    table::{Cell, Table, one_line},
};

/// Arguments of `turns`.
#[derive(Debug, Args)]
pub struct TurnsArgs {
    /// The agent.
    name: AgentName,
    /// Only turns before this one.
    #[arg(long, value_name = "ID")]
    before: Option<TurnRowId>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
}

impl TurnsArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let page = host
            .call(&Turns {
                name: self.name,
                before: self.before,
                limit: Some(self.limit),
            })
            .await?;
        if out.is_json() {
            return out.json(json::TurnList::from(&page));
        }
        if page.turns.is_empty() {
            out.note("no turns yet");
            return Ok(());
        }
        out.table(&table(&page.turns))?;
        if let Some(next) = page.next {
            out.note(format_args!("there is more: go on with --before {next}"));
        }
        Ok(())
    }
}

fn table(turns: &[TurnRow]) -> Table {
    let mut table = Table::new(&[
        "ID", "AGE", "KIND", "OUTCOME", "SECONDS", "IN", "CACHED", "OUT", "COST", "MODEL", "NOTE",
    ]);
    let now = Timestamp::now();
    for row in turns {
        let counts = &row.counts;
        let outcome = one_line(&counts.outcome);
        let cached = counts.cache_read_tokens + counts.cache_creation_tokens;
        table.row([
            row.turn_row_id.to_string().as_str().into(),
            age(counts.started_at, now).as_str().into(),
            counts.kind.as_str().into(),
            Cell::styled(&outcome, outcome_style(&counts.outcome)),
            seconds(counts.duration_ms).as_str().into(),
            counts.input_tokens.to_string().as_str().into(),
            cached.to_string().as_str().into(),
            counts.output_tokens.to_string().as_str().into(),
            dollars(counts.cost_micro_usd).as_str().into(),
            one_line(&counts.model).as_str().into(),
            one_line(counts.note.as_deref().unwrap_or_default())
                .as_str()
                .into(),
        ]);
    }
    table
}

fn outcome_style(outcome: &str) -> Style {
    if GOOD_OUTCOMES.contains(&outcome) {
        style::GOOD
    } else if DEFERRED_OUTCOMES.contains(&outcome) {
        style::WARN
    } else {
        style::BAD
    }
}

/// Seconds with one digit behind the point.
fn seconds(millis: u64) -> String {
    format!("{}.{}", millis / 1_000, millis % 1_000 / 100)
}

/// Millionths of a dollar as dollars.
pub(super) fn dollars(micros: u64) -> String {
    format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_without_rounding_up() {
        assert_eq!(dollars(0), "$0.0000");
        assert_eq!(dollars(4_711), "$0.0047");
        assert_eq!(dollars(12_345_678), "$12.3456");
        assert_eq!(seconds(5_210), "5.2");
        assert_eq!(seconds(999), "0.9");
    }
}
