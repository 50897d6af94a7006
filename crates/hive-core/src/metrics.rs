//! What the daemon counts, in Prometheus' text format.

use std::{
    sync::atomic::{AtomicI64, AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Counters and gauges of one daemon.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    messages: Counter<u64, AtomicU64>,
    operations: Counter<u64, AtomicU64>,
    groups: Counter<u64, AtomicU64>,
    group_seconds: Histogram,
    parked: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("hive");
        let messages = Counter::default();
        registry.register(
            "messages_stored",
            "Durable messages stored",
            messages.clone(),
        );
        let operations = Counter::default();
        registry.register(
            "broker_operations",
            "Requests the broker ran",
            operations.clone(),
        );
        let groups = Counter::default();
        registry.register("broker_groups", "Groups committed", groups.clone());
        let buckets = [
            0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0,
        ];
        let group_seconds = Histogram::new(buckets);
        registry.register(
            "broker_group_seconds",
            "From taking a group to having answered it or handed its answers over",
            group_seconds.clone(),
        );
        let parked = Gauge::default();
        registry.register(
            "parked_receivers",
            "Receivers that wait for mail",
            parked.clone(),
        );
        Self {
            registry,
            messages,
            operations,
            groups,
            group_seconds,
            parked,
        }
    }

    /// Counts a committed group.
    pub(crate) fn group(&self, operations: usize, sent: u32, took: Duration, parked: usize) {
        self.operations.inc_by(operations as u64);
        self.messages.inc_by(u64::from(sent));
        self.groups.inc();
        self.group_seconds.observe(took.as_secs_f64());
        self.parked.set(i64::try_from(parked).unwrap_or(i64::MAX));
    }

    /// The text that a Prometheus server reads.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
