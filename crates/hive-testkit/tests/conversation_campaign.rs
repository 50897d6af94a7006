//! A short conversation under fire. `make soak` runs long ones.

use hive_testkit::conversation::Conversation;

#[expect(
    clippy::print_stdout,
    reason = "a failed run is repeated with its seed"
)]
#[tokio::test(flavor = "multi_thread")]
async fn campaign_of_a_conversation() {
    let seed = match std::env::var("HIVE_SEED") {
        Ok(seed) => seed.parse().expect("HIVE_SEED is a number"),
        Err(_) => u64::from(std::process::id()),
    };
    println!("HIVE_SEED={seed}");
    let conversation = Conversation {
        seed,
        agents: 8,
        topics: 60,
        kills: 6,
    };
    let mut finished = conversation.run(|_| ()).await.expect("it comes to an end");
    println!("{}", finished.tally);
    if !finished.violations.is_empty() {
        let root = finished.hive.keep().await.expect("it can be killed");
        panic!("{:#?}\nhive: {}", finished.violations, root.display());
    }
    let tally = finished.tally;
    for (what, count) in [
        ("messages", tally.messages),
        ("replies", tally.replies),
        ("questions", tally.questions),
        ("answers", tally.answered),
        ("reminders", tally.reminders),
    ] {
        assert!(count > 20, "too few {what} to prove anything: {tally}");
    }
    assert!(tally.expired > 0 && tally.cancelled > 0, "{tally}");
    assert!(tally.redelivered > 0, "{tally}");
}
