//! JSON lines on unix sockets: listeners, connections, and the way back for replies.
//!
//! Everything a peer sends is hostile: lines are bounded while they are read, slow lines have a
//! deadline, and a connection that has too much in flight, or does not read its replies, is simply
//! not read from. What a command means is a [`Service`]'s business.

mod connection;
mod listener;
mod outbox;

pub(crate) use connection::{Limits, Service};
pub(crate) use listener::{Listener, bind};
pub(crate) use outbox::{Outbox, Reply, together};
