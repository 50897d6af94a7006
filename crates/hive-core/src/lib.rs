//! The host daemon and the operator's command line.
//!
//! `daemon` composes the parts and owns the lifecycle; `server` speaks JSON lines on unix sockets;
//! `agent_commands` and `host_commands` hold one file per command; `broker` decides what is written
//! and commits it in groups; `roster` and `ports` are pure rules. The store knows none of them.

pub mod agent_config;
pub mod broker;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod journal;
pub mod paths;

mod access;
mod agent_commands;
mod approvals;
mod budgets;
mod companions;
mod credentials;
mod cron;
mod egress;
mod engine;
mod gateway;
mod harnesses;
mod host_commands;
mod http;
mod links;
mod metrics;
mod model;
mod nix_flake;
mod pages;
mod pauses;
mod permissions;
mod ports;
mod repos;
mod roster;
mod server;
mod spill;
mod supervisor;
mod updates;
mod waiting;

/// Runs this process as the keeper of an agent, if it was started as one; how that ended.
pub fn keeper() -> Option<std::process::ExitCode> {
    let is_keeper = std::env::args_os().nth(1)? == supervisor::KEEPER;
    is_keeper.then(hive_runtime::keeper::main)
}
