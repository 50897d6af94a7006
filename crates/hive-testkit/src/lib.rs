//! What tests of a whole hive are made of.
//!
//! [`hive`] starts the real daemon on a directory of its own; [`campaign`] lets many clients loose
//! on it while it is killed. [`history`] records what clients asked and heard, and [`checker`]
//! proves from that alone that the broker kept its promises; [`reference`](mod@reference) is a tiny
//! correct broker that the checker itself is tested with. [`turns`] does the same for the turn loop:
//! harnesses with a fake engine, killed at every place. [`conversation`] lets agents talk to each
//! other with threads, questions and reminders.

pub mod bash;
pub mod behaviour;
mod binary;
pub mod campaign;
pub mod checker;
pub mod claude;
pub mod conversation;
pub mod engine;
pub mod harness;
pub mod history;
pub mod hive;
pub mod link;
pub mod mcp_tools;
pub mod nix;
pub mod reference;
pub mod rng;
pub mod turns;
pub mod waiting;
