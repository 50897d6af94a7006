//! Every implementation of [`hive_store::Mail`] keeps the same promises.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use common::Sqlite;
use hive_store::conformance::{self, Factory, Limits, Model, Subject};

struct Models;

impl Factory for Models {
    fn fresh(&self, limits: Limits) -> Box<dyn Subject> {
        Box::new(Model::new(limits))
    }
}

/// Databases that lag so many groups behind their redo journal.
struct Databases(u32);

impl Factory for Databases {
    fn fresh(&self, limits: Limits) -> Box<dyn Subject> {
        Box::new(Sqlite::new(limits, self.0))
    }
}

#[test]
fn the_model_keeps_every_promise() {
    conformance::check(&Models);
}

#[test]
fn sqlite_keeps_every_promise() {
    conformance::check(&Databases(0));
}

#[test]
fn sqlite_behind_its_journal_keeps_every_promise() {
    for behind in [1, 3, u32::MAX] {
        conformance::check(&Databases(behind));
    }
}
