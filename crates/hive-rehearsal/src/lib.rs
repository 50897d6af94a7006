//! A scripted model behind the real API shapes, on loopback.
//!
//! [`Rehearsal::start`] serves a [`Scenario`] on a port of its own: the Anthropic Messages API and
//! the OpenAI-compatible chat completions, streaming and not, so exactly that clients cannot tell.
//! The same scenario gives the same answers: a rule looks at the request and at counters, never at
//! a clock or at chance.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use hive_rehearsal::{Rehearsal, Scenario};
//!
//! let scenario = Scenario::parse("test", "[[rule]]\nanswer.text = 'hello {{from}}'")?;
//! let model = Rehearsal::start(scenario).await?;
//! // … run something with ANTHROPIC_BASE_URL set to model.url() …
//! let seen = model.wait_for_requests(1).await?;
//! assert_eq!(seen[0].rule.as_deref(), Some("rule 1"));
//! model.stop().await;
//! # Ok(())
//! # }
//! ```

mod api;
pub mod ask;
pub mod cli;
mod ids;
mod mask;
mod proxy;
pub mod recording;
mod replay;
pub mod scenario;
mod script;
mod server;
mod sse;
mod tokens;

pub use self::{
    scenario::{Scenario, ScenarioError},
    server::{
        Options, Rehearsal, StartError,
        ledger::{Seen, TooFewRequests},
    },
};
