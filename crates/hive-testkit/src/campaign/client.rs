//! One client of a campaign: asks, hears or loses the answer, and goes on.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::exchange::{Caller, Manner};
use crate::{
    behaviour::Actor,
    history::{Call, Op},
    rng::Rng,
};

/// How long a client waits before it tries again to reach a daemon that is not there.
const ABSENT: Duration = Duration::from_millis(5);

/// A client with its habits.
pub(super) struct Client {
    pub(super) actor: Actor,
    pub(super) caller: Caller,
    pub(super) rng: Rng,
    /// How long it pauses between calls at most, in microseconds.
    pub(super) pause_micros: u64,
    pub(super) stop: CancellationToken,
}

impl Client {
    /// Runs until it is told to stop, and returns what it saw.
    ///
    /// # Errors
    /// When the daemon hangs or talks nonsense.
    pub(super) async fn run(mut self) -> anyhow::Result<Vec<Op>> {
        let mut ops = Vec::new();
        while !self.stop.is_cancelled() {
            let call = self.actor.next_call();
            let Some(op) = self.place(call).await? else {
                break;
            };
            if op.call.is_unknown() {
                self.actor.lost(&op.call);
            } else {
                self.actor.heard(&op.call);
            }
            ops.push(op);
            let pause = self.rng.within(0..self.pause_micros);
            tokio::time::sleep(Duration::from_micros(pause)).await;
        }
        Ok(ops)
    }

    /// Makes one call as soon as there is a daemon to take it; none when the campaign ended first.
    async fn place(&mut self, call: Call) -> anyhow::Result<Option<Op>> {
        let wait_seconds = u32::from(self.rng.percent(40));
        let manner = match self.rng.within(0..100) {
            0..3 => Manner::Leaves(Duration::ZERO),
            3..6 => Manner::Leaves(Duration::from_micros(self.rng.within(0..5_000))),
            _ => Manner::Patient,
        };
        while !self.stop.is_cancelled() {
            let done = self.caller.call(call.clone(), wait_seconds, manner).await?;
            if done.is_some() {
                return Ok(done);
            }
            tokio::time::sleep(ABSENT).await;
        }
        Ok(None)
    }
}
