//! What agents spent, budgets of a day, and pauses: kept across crashes, by day in UTC.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use common::{DAY, Hive, agent, at};
use hive_store::sqlite::{BudgetDay, CallCost};
use hive_wire::{QuestionId, host::PauseCause};

fn cost(tokens: u64) -> CallCost {
    CallCost {
        input_tokens: tokens,
        output_tokens: 2,
        cache_read_tokens: 3,
        cache_creation_tokens: 4,
        cost_micro_usd: 5,
    }
}

#[test]
fn calls_add_up_by_agent_and_day_and_survive_a_crash() {
    let mut hive = Hive::new();
    hive.clock = DAY * 100 + 1;
    hive.run(|tx| tx.add_spend(&agent("ada"), &cost(10)));
    hive.run(|tx| tx.add_spend(&agent("ada"), &cost(20)));
    hive.run(|tx| tx.add_spend(&agent("bob"), &cost(u64::MAX)));
    hive.crash();
    let rows = hive.run(|tx| tx.spend_today());
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.agent.as_str(),
                row.calls,
                row.input_tokens,
                row.cost_micro_usd,
            )
        })
        .collect();
    assert_eq!(told, [("ada", 2, 30, 10), ("bob", 1, i64::MAX as u64, 5)]);
    hive.clock = DAY * 101;
    assert!(hive.run(|tx| tx.spend_today()).is_empty(), "another day");
    hive.run(|tx| tx.add_spend(&agent("ada"), &cost(1)));
    let readers = hive.readers();
    let days: Vec<_> = readers.spend(2, at(DAY * 101)).unwrap();
    let days: Vec<_> = days
        .iter()
        .map(|row| (row.day.as_str(), row.agent.as_str()))
        .collect();
    assert_eq!(
        days,
        [
            ("1970-04-12", "ada"),
            ("1970-04-11", "ada"),
            ("1970-04-11", "bob")
        ]
    );
    assert_eq!(readers.spend(1, at(DAY * 101)).unwrap().len(), 1);
}

#[test]
fn a_budget_is_of_one_day() {
    let mut hive = Hive::new();
    hive.clock = DAY * 100;
    assert_eq!(hive.run(|tx| tx.budget_day("ada")), BudgetDay::default());
    let day = BudgetDay {
        noted: true,
        question: Some(QuestionId(7)),
        raises: 2,
    };
    hive.run(|tx| tx.set_budget_day("ada", &day));
    hive.crash();
    assert_eq!(hive.run(|tx| tx.budget_day("ada")), day);
    assert_eq!(hive.run(|tx| tx.budget_day("")), BudgetDay::default());
    let found = hive.run(|tx| tx.budget_of_question(QuestionId(7)));
    assert_eq!(found.as_deref(), Some("ada"));
    hive.clock = DAY * 101;
    assert_eq!(hive.run(|tx| tx.budget_day("ada")), BudgetDay::default());
    assert_eq!(hive.run(|tx| tx.budget_of_question(QuestionId(7))), None);
}

#[test]
fn c18_pauses_have_causes_and_survive_a_crash() {
    use PauseCause::{Budget, Operator};
    let mut hive = Hive::new();
    hive.clock = DAY * 100;
    assert!(hive.run(|tx| tx.pause("ada", Budget, "spent")));
    assert!(!hive.run(|tx| tx.pause("ada", Budget, "again")));
    assert!(hive.run(|tx| tx.pause("ada", Operator, "lunch")));
    assert!(hive.run(|tx| tx.pause("", Operator, "all")));
    hive.crash();
    let told = |hive: &Hive| -> Vec<String> {
        let rows = hive.readers().pauses().unwrap();
        let line = |row: &hive_wire::host::PauseRow| {
            let who = row.agent.as_ref().map_or("hive", |name| name.as_str());
            format!("{who} {} {}", row.cause.as_str(), row.reason)
        };
        rows.iter().map(line).collect()
    };
    assert_eq!(
        told(&hive),
        [
            "hive operator all",
            "ada budget spent",
            "ada operator lunch"
        ]
    );
    assert!(
        hive.run(|tx| tx.resume_older(Budget, at(DAY * 100)))
            .is_empty(),
        "not yet"
    );
    let ended = hive.run(|tx| tx.resume_older(Budget, at(DAY * 101)));
    assert_eq!(ended, ["ada"]);
    assert!(hive.run(|tx| tx.resume("ada", None)));
    assert!(!hive.run(|tx| tx.resume("ada", Some(Operator))));
    assert_eq!(told(&hive), ["hive operator all"]);
}
