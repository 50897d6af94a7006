//! Short crash campaigns against the real daemon. `make soak` runs long ones.

use hive_testkit::campaign::{Campaign, Finished};

/// A new seed each time, unless `HIVE_SEED` repeats an earlier one.
fn seed() -> u64 {
    match std::env::var("HIVE_SEED") {
        Ok(seed) => seed.parse().expect("HIVE_SEED is a number"),
        Err(_) => u64::from(std::process::id()),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a failed run is repeated with its seed"
)]
async fn run(campaign: Campaign) -> Finished {
    println!("HIVE_SEED={}", campaign.seed);
    let mut finished = campaign.run(|_| ()).await.expect("the daemon holds out");
    println!("{}", finished.report.tally);
    if !finished.report.is_clean() {
        let path = std::env::temp_dir().join(format!("hive-history-{}.jsonl", campaign.seed));
        finished.history.write(&path).expect("there is room for it");
        let root = finished.hive.keep().await.expect("it can be killed");
        panic!(
            "{}\nhistory: {}\nhive: {}",
            finished.report,
            path.display(),
            root.display()
        );
    }
    finished
}

#[tokio::test(flavor = "multi_thread")]
async fn campaign_of_kills() {
    let finished = run(Campaign {
        reprieve_micros: 20_000..1_000_000,
        ..Campaign::new(seed(), 10)
    })
    .await;
    let tally = finished.report.tally;
    assert!(tally.crashes > 10, "{tally}");
    for (what, count) in [
        ("sends", tally.sends_ok),
        ("deliveries", tally.deliveries),
        ("redeliveries", tally.redeliveries),
        ("acked messages", tally.acked),
    ] {
        assert!(count > 100, "too few {what} to prove anything: {tally}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn campaign_of_ordered_crashes() {
    let finished = run(Campaign {
        failpoints: true,
        reprieve_micros: 1_000_000..2_000_000,
        ..Campaign::new(seed(), 12)
    })
    .await;
    let tally = finished.report.tally;
    assert!(
        finished.ordered_crashes > 0,
        "the daemon has no failpoints: build it with `--features hive-core/failpoints`"
    );
    assert!(
        tally.sends_ok > 100,
        "too few sends to prove anything: {tally}"
    );
}
