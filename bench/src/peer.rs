//! What is compared: each peer is a server the benchmark started, and speaks the same shape of
//! work through [`Peer`].
//!
//! A client is a pair of connections. The receiver parks, the sender makes a message durable, the
//! receiver takes it and makes the ack durable. Each method returns when the peer has answered.

pub(crate) mod floor;
pub(crate) mod hive;
pub(crate) mod pingpong;
pub(crate) mod postgres;
pub(crate) mod redis;

use std::fmt;

use anyhow::Result;
use serde::Serialize;

/// The peers that pass messages, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Hive,
    Redis,
    Postgres,
    PingPong,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hive => "hive",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::PingPong => "ping-pong",
        })
    }
}

/// A running message server.
pub(crate) trait Peer {
    type Sender: Sender + 'static;
    type Receiver: Receiver + 'static;

    /// `count` fresh clients with empty queues, whose messages all have this `body` of plain ASCII.
    async fn pairs(&self, count: usize, body: &str) -> Result<Vec<Pair<Self>>>;

    /// The server's process.
    fn pid(&self) -> u32;
}

pub(crate) type Pair<P> = (<P as Peer>::Sender, <P as Peer>::Receiver);

pub(crate) trait Sender {
    /// Sends one message and returns when the peer says that it is durable.
    async fn send(&mut self) -> Result<()>;
}

pub(crate) trait Receiver {
    /// Asks for the next message without waiting for it, where the peer can wake a receiver.
    async fn park(&mut self) -> Result<()>;

    /// Waits for the message asked for and leases it.
    async fn take(&mut self) -> Result<()>;

    /// Acknowledges what was taken and returns when the peer says that this is durable.
    async fn ack(&mut self) -> Result<()>;
}
