//! Sends to one agent, with a few messages on their way at a time, until all of them are settled.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::Context;
use hive_wire::{
    MessageId,
    agent::{MessageState, Send},
    client::Client,
    host::{LookUpReceipt, SendAsOperator},
    name::OPERATOR,
};

use super::{log::Sent, plan};
use crate::rng::Rng;

/// How long a call may take while the daemon comes and goes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a receipt is looked at: nobody tells a sender what became of its message.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Somebody who sends to one agent, in the name of the operator and of other agents.
pub(super) struct Sender {
    pub(super) to: String,
    /// The operator's own connection, then those of other agents.
    pub(super) host: Client,
    pub(super) peers: Vec<(String, Client)>,
    pub(super) rng: Rng,
    /// What was acknowledged.
    pub(super) sent: Vec<Sent>,
}

impl Sender {
    /// Sends so many messages and waits until each is acked or dead; `settled` counts them.
    ///
    /// # Errors
    /// When the daemon does not answer in time, or refuses.
    pub(super) async fn wave(&mut self, count: u64, settled: &AtomicU64) -> anyhow::Result<()> {
        let mut open = VecDeque::new();
        for _ in 0..count {
            let most = self.rng.index(6);
            while open.len() > most {
                self.settle_oldest(&mut open, settled).await?;
            }
            open.push_back(self.send().await?);
        }
        while !open.is_empty() {
            self.settle_oldest(&mut open, settled).await?;
        }
        Ok(())
    }

    /// Sends one message. It has a key, so that it is repeated until it is acknowledged.
    async fn send(&mut self) -> anyhow::Result<MessageId> {
        let key = format!("{}-{}", self.to, self.sent.len());
        let body = plan::body(&key, &mut self.rng);
        let as_peer = !self.peers.is_empty() && self.rng.percent(50);
        let (from, id) = if as_peer {
            let (name, client) = &self.peers[self.rng.index(self.peers.len())];
            let send = Send {
                to: self.to.clone(),
                body,
                in_reply_to: None,
                key: Some(key.parse()?),
            };
            (name.as_str(), client.call_idempotent(&send, PATIENCE).await)
        } else {
            let send = SendAsOperator {
                to: self.to.clone(),
                body,
                in_reply_to: None,
                key: Some(key.parse()?),
            };
            (OPERATOR, self.host.call_idempotent(&send, PATIENCE).await)
        };
        let id = id
            .with_context(|| format!("{key} cannot be sent"))?
            .message_id;
        self.sent.push(Sent {
            id,
            key,
            from: from.to_owned(),
            to: self.to.clone(),
        });
        Ok(id)
    }

    async fn settle_oldest(
        &mut self,
        open: &mut VecDeque<MessageId>,
        settled: &AtomicU64,
    ) -> anyhow::Result<()> {
        let Some(&message_id) = open.front() else {
            return Ok(());
        };
        loop {
            let look = LookUpReceipt { message_id };
            let receipt = self.host.call_idempotent(&look, PATIENCE).await;
            let receipt = receipt.context("cannot read a receipt")?;
            match receipt.state {
                MessageState::Acked | MessageState::Dead | MessageState::Discarded => {
                    open.pop_front();
                    settled.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                MessageState::Stored | MessageState::Leased => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        }
    }
}
