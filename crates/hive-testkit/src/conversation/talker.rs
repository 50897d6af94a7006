//! One agent of a conversation: receives, deals with what it received, begins something of its own,
//! acks; and dies now and then with its turn open.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use hive_wire::{
    ErrorCode, MessageId, QuestionId, SendKey, TurnId,
    agent::{AckTurn, Answer, Ask, CancelLooseEnd, LooseEndId, Message, Recv, Remind, Send},
    client::{Client, ClientError, Options},
    command::Command,
};

use super::ledger::Ledger;
use crate::rng::Rng;

/// How long a call is repeated while the daemon is away.
const PATIENCE: Duration = Duration::from_secs(120);
/// How deep threads get.
const DEPTH: u32 = 4;

/// An agent and what it remembers beyond its death.
pub(super) struct Talker {
    pub(super) name: String,
    pub(super) peers: Vec<String>,
    pub(super) socket: PathBuf,
    pub(super) rng: Rng,
    /// How much it still begins.
    pub(super) topics: u32,
    pub(super) ledger: Arc<Ledger>,
    pub(super) stop: Arc<AtomicBool>,
}

/// What the host says in a message of its own.
#[derive(serde::Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    question_id: Option<QuestionId>,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    expires_at: Option<String>,
}

impl Talker {
    /// Lives again and again until it is told to stop.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        for life in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.ledger.lives_again();
            let lived = self.live(life).await;
            lived.with_context(|| format!("life {life} of {}", self.name))?;
        }
        Ok(())
    }

    /// One life: it ends with a turn that is not acked, or when all is over.
    async fn live(&mut self, life: u32) -> anyhow::Result<()> {
        let client = Client::new(&self.socket, Options::default());
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            let turn: TurnId = format!("t-{life}-{number}").parse()?;
            let receive = Recv {
                wait_seconds: 1,
                max: 8,
                turn: Some(turn.clone()),
                req: Some("r".parse()?),
            };
            let received = client.call_idempotent(&receive, PATIENCE).await?;
            for message in &received.messages {
                if message.delivery > 1 {
                    self.ledger.redelivered();
                }
                self.deal_with(&client, message).await?;
            }
            if self.topics > 0 {
                self.topics -= 1;
                self.begin(&client).await?;
            }
            if !received.messages.is_empty() && self.rng.percent(5) {
                return Ok(());
            }
            let ids = received.messages.iter().map(|message| message.id).collect();
            client
                .call_idempotent(&AckTurn { turn, ids }, PATIENCE)
                .await?;
        }
        Ok(())
    }

    async fn deal_with(&mut self, client: &Client, message: &Message) -> anyhow::Result<()> {
        match message.from.as_str() {
            "system" => self.hear_event(client, message).await,
            "reminder" => {
                self.ledger.fired(&message.body, message.id);
                Ok(())
            }
            _ => self.hear(client, message).await,
        }
    }

    /// A message of a peer: one that asks for it gets a reply in its thread.
    async fn hear(&mut self, client: &Client, message: &Message) -> anyhow::Result<()> {
        let (tag, depth) = message.body.split_once(' ').context("a tag and a depth")?;
        self.ledger.heard(tag, message.id);
        let depth: u32 = depth.parse()?;
        if depth == 0 {
            return Ok(());
        }
        let reply = format!("{tag}>{}", self.name);
        let key = format!("re-{}", message.id).parse()?;
        let to = message.from.to_string();
        self.send(client, &reply, depth - 1, to, Some(message.id), key)
            .await
    }

    async fn hear_event(&mut self, client: &Client, message: &Message) -> anyhow::Result<()> {
        let event: Event = serde_json::from_str(&message.body)?;
        let Some(question_id) = event.question_id else {
            return Ok(());
        };
        match event.event.as_str() {
            "question_asked" => {
                // Some that expire are left to it.
                if event.expires_at.is_some() && question_id.0 % 3 == 0 {
                    return Ok(());
                }
                let answer = Answer {
                    question_id,
                    answer: format!("answer to {question_id}"),
                    key: Some(format!("an-{question_id}").parse()?),
                };
                // It may have expired or been taken back by now.
                let allowed = &[ErrorCode::Conflict];
                self.try_to(client, &answer, allowed).await?;
            }
            "question_answered" => {
                let answer = event.answer.unwrap_or_default();
                self.ledger.ended(question_id, &answer, message.id);
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins something: a thread, a question or a reminder.
    async fn begin(&mut self, client: &Client) -> anyhow::Result<()> {
        let tag = format!("{}-{}", self.name, self.topics);
        let key: SendKey = tag.parse()?;
        let peer = self.rng.pick(&self.peers).clone();
        match self.rng.within(0..100) {
            0..60 => {
                let depth = u32::try_from(self.rng.within(0..u64::from(DEPTH)))?;
                self.send(client, &tag, depth, peer, None, key).await
            }
            60..85 => self.ask(client, &tag, peer, key).await,
            _ => {
                let remind = Remind {
                    message: tag.clone(),
                    delay_seconds: Some(self.rng.within(0..4)),
                    at_unix_timestamp: None,
                    key: Some(key),
                };
                // The limit of reminders may be reached.
                let allowed = &[ErrorCode::LimitReached];
                if self.try_to(client, &remind, allowed).await?.is_some() {
                    self.ledger.set(&tag);
                }
                Ok(())
            }
        }
    }

    async fn send(
        &mut self,
        client: &Client,
        tag: &str,
        depth: u32,
        to: String,
        in_reply_to: Option<MessageId>,
        key: SendKey,
    ) -> anyhow::Result<()> {
        let send = Send {
            to,
            body: format!("{tag} {depth}"),
            in_reply_to,
            key: Some(key),
        };
        let sent = client.call_idempotent(&send, PATIENCE).await?;
        self.ledger.said(tag, sent.message_id);
        Ok(())
    }

    /// Asks, and takes some questions back.
    async fn ask(
        &mut self,
        client: &Client,
        tag: &str,
        to: String,
        key: SendKey,
    ) -> anyhow::Result<()> {
        let expires = self.rng.percent(50);
        let ask = Ask {
            question: format!("{tag}?"),
            options: Vec::new(),
            multi: false,
            ttl_seconds: expires.then(|| 1 + u32::try_from(self.rng.within(0..4)).unwrap_or(0)),
            to: Some(to),
            wait: false,
            key: Some(key),
        };
        let asked = self
            .try_to(client, &ask, &[ErrorCode::LimitReached])
            .await?;
        let Some(asked) = asked else {
            return Ok(());
        };
        self.ledger.asked(asked.question_id);
        if self.rng.percent(10) {
            let cancel = CancelLooseEnd {
                row: LooseEndId::Question {
                    question_id: asked.question_id,
                },
                key: Some(format!("ca-{}", asked.question_id).parse()?),
            };
            // It may have been answered by now.
            self.try_to(client, &cancel, &[ErrorCode::Conflict]).await?;
        }
        Ok(())
    }

    /// Carries a command out, once whatever happens; none when it was refused for a good reason.
    async fn try_to<C: Command>(
        &self,
        client: &Client,
        command: &C,
        allowed: &[ErrorCode],
    ) -> anyhow::Result<Option<C::Reply>> {
        match client.call_idempotent(command, PATIENCE).await {
            Ok(reply) => Ok(Some(reply)),
            Err(ClientError::Refused(error)) if allowed.contains(&error.code) => Ok(None),
            Err(error) => Err(error).with_context(|| C::NAME),
        }
    }
}
