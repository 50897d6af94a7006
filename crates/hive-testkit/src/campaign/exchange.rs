//! A recorded call on the wire: its request line, its reply, and all the ways to lose it.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context;
use hive_wire::{
    agent::{AckTurn, Confirm, Recv, RequeueInflight, Send},
    command::Command,
    host::SendAsOperator,
    name::OPERATOR,
};

use crate::{
    behaviour,
    history::{Body, Call, Delivery, Nanos, Op, Outcome},
    link::Link,
};

/// The clock that all clients of a campaign share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Nanos {
        Nanos::try_from(self.0.elapsed().as_nanos()).expect("a campaign takes less than 500 years")
    }
}

/// How a client treats one call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Manner {
    /// It waits for the reply.
    Patient,
    /// It drops the connection this long after it wrote the request.
    Leaves(Duration),
}

/// One client's side of a socket.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) client: u32,
    /// An agent, or `operator`.
    pub(super) agent: String,
    pub(super) socket: PathBuf,
    pub(super) clock: Clock,
    link: Option<Link>,
}

impl Caller {
    pub(super) fn new(client: u32, agent: &str, socket: PathBuf, clock: Clock) -> Self {
        Self {
            client,
            agent: agent.to_owned(),
            socket,
            clock,
            link: None,
        }
    }

    /// Makes the call and fills in its outcome. None when there is nobody to call: then nothing
    /// was sent.
    ///
    /// # Errors
    /// When the daemon hangs or talks nonsense.
    pub(super) async fn call(
        &mut self,
        mut call: Call,
        wait_seconds: u32,
        manner: Manner,
    ) -> anyhow::Result<Option<Op>> {
        if self.link.as_ref().is_none_or(Link::is_closed) {
            self.link = None;
            match Link::connect(&self.socket).await {
                Ok(link) => self.link = Some(link),
                Err(_) => return Ok(None),
            }
        }
        let invoke = self.clock.now();
        let answered = self.exchange(&mut call, wait_seconds, manner).await;
        let answered = answered.with_context(|| format!("{}: {call:?}", self.agent))?;
        if !answered {
            self.link = None;
        }
        Ok(Some(Op {
            client: self.client,
            agent: self.agent.clone(),
            invoke,
            complete: self.clock.now(),
            call,
        }))
    }

    async fn exchange(
        &mut self,
        call: &mut Call,
        wait_seconds: u32,
        manner: Manner,
    ) -> io::Result<bool> {
        match call {
            Call::Send {
                to,
                key,
                body,
                outcome,
            } => {
                let send = Send {
                    to: to.clone(),
                    body: behaviour::text(&body.tag),
                    in_reply_to: None,
                    key: key.clone(),
                };
                *outcome = if self.agent == OPERATOR {
                    let send = as_operator(send);
                    self.ask(&send, manner, |sent| sent.message_id).await?
                } else {
                    self.ask(&send, manner, |sent| sent.message_id).await?
                };
                Ok(*outcome != Outcome::Unknown)
            }
            Call::Recv {
                turn,
                req,
                max,
                outcome,
            } => {
                let recv = Recv {
                    wait_seconds,
                    max: *max,
                    turn: turn.clone(),
                    req: req.clone(),
                };
                let batch = |reply: hive_wire::agent::Messages| reply.messages;
                let messages = self.ask(&recv, manner, batch).await?;
                *outcome = delivered(messages);
                Ok(*outcome != Outcome::Unknown)
            }
            Call::Confirm { turn, req, outcome } => {
                let confirm = Confirm {
                    turn: turn.clone(),
                    req: req.clone(),
                };
                *outcome = self.ask(&confirm, manner, |reply| reply.confirmed).await?;
                Ok(*outcome != Outcome::Unknown)
            }
            Call::Ack { turn, ids, outcome } => {
                let ack = AckTurn {
                    turn: turn.clone(),
                    ids: ids.clone(),
                };
                *outcome = self.ask(&ack, manner, |reply| reply).await?;
                Ok(*outcome != Outcome::Unknown)
            }
            Call::Requeue {
                turn,
                reason,
                outcome,
            } => {
                let requeue = RequeueInflight {
                    turn: turn.clone(),
                    reason: *reason,
                };
                *outcome = self.ask(&requeue, manner, |reply| reply).await?;
                Ok(*outcome != Outcome::Unknown)
            }
        }
    }

    /// Writes one request and reads its reply; a reply that does not come is an unknown outcome.
    async fn ask<C: Command, T>(
        &mut self,
        command: &C,
        manner: Manner,
        take: impl FnOnce(C::Reply) -> T,
    ) -> io::Result<Outcome<T>> {
        let Some(link) = &mut self.link else {
            return Ok(Outcome::Unknown);
        };
        if link.write(command).await.is_err() {
            return Ok(Outcome::Unknown);
        }
        if let Manner::Leaves(after) = manner {
            tokio::time::sleep(after).await;
            return Ok(Outcome::Unknown);
        }
        match link.read::<C>().await {
            Ok(Ok(reply)) => Ok(Outcome::Ok(take(reply))),
            Ok(Err(error)) => Ok(Outcome::Refused(error.code)),
            Err(error) => match error.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::InvalidData => Err(error),
                _ => Ok(Outcome::Unknown),
            },
        }
    }
}

fn as_operator(send: Send) -> SendAsOperator {
    SendAsOperator {
        to: send.to,
        body: send.body,
        in_reply_to: send.in_reply_to,
        key: send.key,
    }
}

fn delivered(messages: Outcome<Vec<hive_wire::agent::Message>>) -> Outcome<Vec<Delivery>> {
    match messages {
        Outcome::Ok(messages) => {
            let deliveries = messages.into_iter().map(|message| Delivery {
                id: message.id,
                from: message.from.to_string(),
                body: Body::of(&message.body),
                delivery: message.delivery,
            });
            Outcome::Ok(deliveries.collect())
        }
        Outcome::Refused(code) => Outcome::Refused(code),
        Outcome::Unknown => Outcome::Unknown,
    }
}
