//! Model APIs: Anthropic Messages and OpenAI-compatible chat completions.
//!
//! A provider is a [`Dialect`]: it turns a [`Request`] into an HTTP call and the bytes that come
//! back into [`StreamEvent`]s, and it says what a failure means. It does no I/O, so each is tested
//! with tables. Everything that touches the network is in [`Client`]: connections, time-outs and
//! the one place where requests are retried.
//!
//! This crate knows no tools, no sessions and no permissions. A key is a [`Secret`]: it is written
//! to one header and nowhere else.

pub mod address;
pub mod anthropic;
mod client;
pub mod config;
mod error;
mod event;
mod http;
mod message;
mod models;
pub mod openai;
mod proxy;
mod retry;
mod secret;
mod sse;
mod usage;

pub use client::{Client, Dialect, HttpCall, Progress, Reply, Timeouts};
pub use error::{ApiError, ErrorKind, RateLimit, Reaction, Window};
pub use event::{Assembler, BlockDelta, MessageDelta, MessageHead, StreamEvent, StreamFault};
pub use http::{Connector, Endpoint, EndpointError, Fetch, FetchError, Fetched, Wire};
pub use message::{
    Block, CacheControl, Message, Request, ResultContent, Role, Source, Thinking, ToolSpec,
};
pub use models::{ModelInfo, Models, Price};
pub use retry::RetryPolicy;
pub use secret::Secret;
pub use sse::{SseError, SseEvent, SseParser};
pub use usage::{CacheCreation, Usage};
