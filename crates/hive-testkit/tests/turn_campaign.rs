//! A short campaign of turns against real harnesses. `make soak` runs a long one.

use hive_testkit::turns::TurnCampaign;

/// A new seed each time, unless `HIVE_SEED` repeats an earlier one.
fn seed() -> u64 {
    match std::env::var("HIVE_SEED") {
        Ok(seed) => seed.parse().expect("HIVE_SEED is a number"),
        Err(_) => u64::from(std::process::id()),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stdout,
    reason = "a failed run is repeated with its seed"
)]
async fn campaign_of_turns() {
    let campaign = TurnCampaign {
        seed: seed(),
        turns: 60,
        wave: 20,
    };
    println!("HIVE_SEED={}", campaign.seed);
    let run = campaign.run(|settled, deaths| println!("{settled} settled: {deaths}"));
    let mut finished = run.await.expect("the hive holds out");
    let report = &finished.report;
    println!("{report}");
    if !report.is_clean() {
        let root = finished.hive.keep().await.expect("it can be killed");
        panic!("{report}\nhive: {}", root.display());
    }
    assert_eq!(report.sends, 60);
    assert!(report.runs >= 60 && report.repeats > 0, "{report}");
    assert!(finished.deaths.engines + finished.deaths.harnesses > 0);
}
