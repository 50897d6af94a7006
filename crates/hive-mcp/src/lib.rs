//! What an agent's model can do, as tools of the Model Context Protocol.
//!
//! [`tools`] holds one file per tool of the server `hyperhive`; [`hyperhive`] is what those tools
//! work on: the agent's own socket. The rest is the same for any server with tools and is used by
//! the companions too: [`toolbox`] (how a tool is declared, listed and called), [`server`] (which
//! requests are answered), [`handover`] (what is done once an answer has really been written),
//! [`journal`] (a line before and after each call).
//!
//! The crate decides nothing about who may do what: the host does, for every request, whatever
//! stands in the environment here.

pub mod groups;
pub mod handover;
pub mod hyperhive;
pub mod journal;
pub mod options;
mod schema;
pub mod server;
mod spill;
pub mod stdio;
pub mod toolbox;
pub mod tools;
pub mod whole_file;

pub use options::Options;
