//! Durable state of one hive: messages and turns, agents, questions, reminders, schedules,
//! approvals and permissions in one SQLite file, and the event log in another.
//!
//! The store knows no rules: who may write to whom, what a tool group allows and when a question
//! expires is decided by its caller. What it promises is written on each method, and
//! the suite in `conformance` (a feature) checks those promises against every implementation.
//!
//! Writes go through one owner: [`sqlite::Store`] is `&mut` all the way, a [`sqlite::Group`] is one
//! transaction, and nothing may be acknowledged before [`sqlite::Group::commit`] returned. Reads
//! that need no turn of the writer go through [`sqlite::Readers`].

pub mod event_log;
pub mod failpoint;
pub mod mail;
mod pace;
pub mod refusal;
pub mod sqlite;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use mail::{Mail, NewMessage, Receive, Received};
pub use refusal::Refusal;
pub use sqlite::{Group, Options, Readers, Store, StoreError};
