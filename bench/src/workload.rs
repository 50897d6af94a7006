//! What is measured. Each workload is generic over the peers where it applies to several, and knows
//! nothing of rounds, targets or reports.

pub(crate) mod cycle;
pub(crate) mod history;
pub(crate) mod idle;
pub(crate) mod syncs;
pub(crate) mod wake;

/// A body of plain ASCII that needs no escaping anywhere.
pub(crate) fn body(bytes: usize) -> String {
    "the quick brown fox jumps over the lazy dog. "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}
