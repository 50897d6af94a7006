//! The native engine: a drop-in for headless `claude`.
//!
//! [`conversation`] is the loop, [`tools`] is what the model can do, [`permission`] and [`bash`]
//! decide what it may do, [`session`] is what survives, and [`stream_json`] with [`printer`] is the
//! contract with whoever runs it. It knows no broker and no hive.

pub mod bash;
pub mod batch;
pub mod browser;
pub mod cli;
pub mod consent;
pub mod conversation;
pub mod files;
mod group;
pub mod happening;
pub mod history;
mod hosts;
pub mod ids;
pub mod input;
pub mod mcp;
pub mod paths;
pub mod permission;
pub mod permissions_test;
pub mod printer;
pub mod run;
pub mod sandbox;
pub mod session;
pub mod settings;
pub mod slash;
pub mod startup;
pub mod stream_json;
pub mod tool;
pub mod tools;
pub mod turn_end;
