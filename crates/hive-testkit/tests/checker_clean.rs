//! The checker finds nothing in the histories of a correct broker.

use hive_testkit::{checker::check, reference::schedule::Plan};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(100, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_correct_broker_is_clean(
        seed in any::<u64>(),
        lost_percent in 0u64..30,
        crash_permyriad in 0u64..200,
    ) {
        let plan = Plan { lost_percent, crash_permyriad, ..Plan::new(seed) };
        let report = check(&plan.run());
        prop_assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn the_schedules_do_everything() {
    let report = check(&Plan::new(1).run());
    assert!(report.is_clean(), "{report}");
    let tally = report.tally;
    for (what, count, least) in [
        ("sends", tally.sends_ok, 50),
        ("lost sends", tally.sends_unknown, 3),
        ("deliveries", tally.deliveries, 100),
        ("redeliveries", tally.redeliveries, 30),
        ("lost receives", tally.recvs_lost, 10),
        ("acked messages", tally.acked, 30),
        ("dead letters", tally.dead, 2),
        ("crashes", tally.crashes, 3),
    ] {
        assert!(count >= least, "{what}: {tally}");
    }
}

#[test]
fn a_history_file_holds_all_of_it() {
    let history = Plan::new(2).run();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    history.write(&path).unwrap();
    let read = hive_testkit::history::History::read(&path).unwrap();
    assert_eq!(read, history);
}
