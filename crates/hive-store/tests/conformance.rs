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

struct Databases;

impl Factory for Databases {
    fn fresh(&self, limits: Limits) -> Box<dyn Subject> {
        Box::new(Sqlite::new(limits))
    }
}

#[test]
fn the_model_keeps_every_promise() {
    conformance::check(&Models);
}

#[test]
fn sqlite_keeps_every_promise() {
    conformance::check(&Databases);
}
