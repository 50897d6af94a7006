//! The checker finds out a broker with a realistic fault from what its clients see.

use hive_testkit::{
    checker::{Rule, check},
    reference::{Bug, schedule::Plan},
};

const SEEDS: u64 = 24;

/// Runs the broker with a bug under many seeds and demands that most of them show it: a bug
/// may well not strike in a short schedule, or strike where nobody was looking.
fn finds(bug: Bug, rules: &[Rule]) {
    let found = (0..SEEDS).filter(|seed| {
        let plan = Plan {
            bug: Some(bug),
            crash_permyriad: 80,
            ..Plan::new(*seed)
        };
        let report = check(&plan.run());
        rules.iter().any(|rule| report.found(*rule))
    });
    let found = found.count();
    assert!(
        found * 4 >= 3 * SEEDS as usize,
        "{bug:?}: {found} of {SEEDS}"
    );
}

#[test]
fn replies_before_the_commit() {
    finds(Bug::LateCommit, &[Rule::Lost, Rule::Duplicated]);
}

#[test]
fn forgotten_acks() {
    finds(Bug::ForgetsAcks, &[Rule::AckedAgain, Rule::AckVanished]);
}

#[test]
fn forgotten_delivery_numbers() {
    finds(Bug::ForgetsDeliveries, &[Rule::Unmarked]);
}

#[test]
fn forgotten_keys() {
    finds(Bug::ForgetsKeys, &[Rule::Duplicated]);
}

#[test]
fn forgotten_turns() {
    finds(Bug::ForgetsTurns, &[Rule::TurnEnd, Rule::TwoHolders]);
}

#[test]
fn requeued_messages_that_lose_their_place() {
    finds(Bug::RequeuesAtEnd, &[Rule::Order]);
}

#[test]
fn displaced_turns_that_stay_open() {
    finds(
        Bug::KeepsDisplaced,
        &[Rule::TwoHolders, Rule::Unmarked, Rule::TurnEnd],
    );
}

#[test]
fn repeated_receives_that_take_more() {
    finds(Bug::IgnoresReq, &[Rule::Unmarked, Rule::ReplayDiffers]);
}

#[test]
fn acks_of_what_was_not_handed_over() {
    finds(Bug::AcksEverything, &[Rule::Lost, Rule::Receipt]);
}
