//! The checker finds every fault that is planted into a correct history.
//!
//! Each fault is one edit of what clients saw. Where it goes is random, among the places where it
//! is a fault for certain; a history without such a place is skipped.

mod places;
mod plant;

use hive_testkit::{
    checker::{Rule, check},
    history::History,
    reference::schedule::Plan,
    rng::Rng,
};
use proptest::prelude::*;

/// Plants a fault; false when the history has no place for it.
type Fault = fn(&mut History, &mut Rng) -> bool;

fn is_found(seed: u64, fault: Fault, rules: &[Rule]) -> Result<(), TestCaseError> {
    let mut history = Plan::new(seed).run();
    prop_assume!(fault(&mut history, &mut Rng::new(seed)));
    let report = check(&history);
    for rule in rules {
        prop_assert!(report.found(*rule), "no {rule:?} in {report}");
    }
    Ok(())
}

macro_rules! planted {
    ($($name:ident => $($rule:ident)|+),+ $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: std::env::var("PROPTEST_CASES").map_or(40, |cases| cases.parse().unwrap()),
                failure_persistence: None,
                ..ProptestConfig::default()
            })]
            $(#[test]
            fn $name(seed in any::<u64>()) {
                is_found(seed, plant::$name, &[$(Rule::$rule),+])?;
            })+
        }
    };
}

planted! {
    an_acknowledged_send_is_dropped => Lost,
    an_acknowledged_send_stays_undelivered => Lost,
    an_acked_message_comes_again => AckedAgain,
    an_acked_message_comes_again_unmarked => AckedAgain | Unmarked,
    two_messages_of_a_batch_are_swapped => Order,
    two_messages_of_a_sender_are_swapped => Order,
    a_requeued_message_loses_its_place => Order,
    a_message_is_doubled_without_a_new_number => Unmarked,
    a_first_delivery_is_called_a_later_one => Unmarked,
    a_body_is_altered => Altered,
    a_message_is_invented => Invented,
    a_message_comes_from_the_wrong_sender => Invented,
    a_message_comes_to_the_wrong_agent => Invented,
    a_refused_send_is_delivered => Invented,
    an_ack_vanishes => AckVanished,
    a_message_is_acked_by_nobody => Lost,
    a_key_makes_two_messages => Duplicated,
    a_send_arrives_as_two_messages => Duplicated,
    a_message_is_leased_to_two_turns => TwoHolders,
    a_receipt_counts_too_few_deliveries => Receipt,
    a_receipt_counts_too_many_deliveries => Receipt,
    a_letter_is_dead_too_early => Lost,
    a_dead_letter_is_hidden => Lost,
    a_replay_differs => ReplayDiffers,
    a_turn_is_forgotten => TurnEnd,
    a_turn_counts_wrong => TurnEnd,
}
