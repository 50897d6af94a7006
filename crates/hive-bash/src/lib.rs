//! Background shell commands that outlive a turn: the MCP server `bash` and the daemon behind it.
//!
//! [`daemon`] owns the tasks: their processes, their output, what is written about them, and the
//! news that goes to the agent when one ends. [`mcp`] is a thin bridge that the engine starts anew
//! for each turn; it only speaks the few commands of [`wire`]. Each task runs under a [`guard`], a
//! small process that finds and ends everything the command left behind.
//!
//! Invariants: what is said about a task was written down before; a task that was started ends in
//! exactly one final state, whenever the daemon is killed; the agent is told about every end until
//! it is known to have seen it; nothing that a task starts outlives the daemon.

pub mod bash_env;
pub mod daemon;
pub mod guard;
pub mod mcp;
pub mod options;
pub mod task;
pub mod wire;

mod environment;
mod loose_ends;
mod output;
mod replace;
mod reporter;
mod server;
mod supervise;
mod table;
mod tools;
mod tree;
