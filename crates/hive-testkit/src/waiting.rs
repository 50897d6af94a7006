//! Waiting for what tells nobody of itself, such as the end of a process that is not ours.

use std::time::{Duration, Instant};

/// How long anything may take, on a busy machine, before a test gives up.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Looks until it is so.
///
/// # Panics
/// When it never comes to be.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be: {what}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
