//! The harness of one agent: takes its mail, runs an engine for each turn, and reports what happened.
//!
//! [`engine`] is the lower half: it runs one turn of `claude`, or of any command with the same
//! contract, and says how it ended. It knows nothing of mail, sockets or the host.
//!
//! The upper half is the loop ([`serve`]): receive, run, end the turn at the host, again. It knows
//! the hive as a [`surface`] only. What it decides is in pure modules beside it: [`compaction`],
//! [`prompt`], [`boot`], [`window`]; what it says of itself goes over the [`bus`] and the
//! [`reporter`] to the host, and what the host wants of it comes over [`control`]. [`bash_daemon`]
//! looks after the background shell.

mod bash_daemon;
pub mod boot;
pub mod bus;
pub mod compaction;
pub mod control;
pub mod credentials;
pub mod engine;
pub mod environment;
pub mod files;
pub mod forwarder;
mod ident;
pub mod lock;
pub mod login;
pub mod model;
mod plugins;
mod program;
pub mod prompt;
pub mod records;
pub mod reporter;
pub mod serve;
pub mod stats;
pub mod surface;
mod turn;
mod waiting;
pub mod window;
