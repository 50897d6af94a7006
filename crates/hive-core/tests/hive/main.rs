//! A whole hive from outside: the real daemon, its sockets, its command line and its port.
//!
//! One binary for all of it, because linking is what takes time. Every test has a hive of its own.
//! Tests are named after the requirements they check.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod abuse;
mod abuse_memory;
mod agents;
mod approvals;
mod approvals_content;
mod cli;
#[cfg(feature = "mcp-fixtures")]
mod conformance;
mod control;
mod crew;
mod daemon;
mod disk_full;
mod environment;
mod grants;
mod http;
mod identity;
mod keys;
mod liar;
mod lifecycle;
mod limits;
mod loose_ends;
mod mail;
mod mcp;
mod own_files;
mod pages;
mod peer;
mod reminder_limit;
mod reports;
mod restart;
mod schedules;
mod service_manager;
mod spending;
mod syncs;
mod turns;
mod turns_ending;
mod up;
mod up_native;
mod walk;
mod web;
mod web_api;
mod web_attacks;
mod web_events;
mod wire;
