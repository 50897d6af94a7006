//! The host daemon and the operator's command line.
//!
//! `daemon` composes the parts and owns the lifecycle; `server` speaks JSON lines on unix sockets;
//! `agent_commands` and `host_commands` hold one file per command; `broker` decides what is written
//! and commits it in groups; `roster` and `ports` are pure rules. The store knows none of them.

pub mod broker;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod paths;

mod agent_commands;
mod host_commands;
mod http;
mod metrics;
mod ports;
mod roster;
mod server;
