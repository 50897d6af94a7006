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

use super::{
    ledger::{Ledger, News, Query, Words},
    phrase,
};
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
    from: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    multi: bool,
    #[serde(default)]
    answer: String,
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
                self.ledger.fired(&self.name, &message.body, message.id);
                Ok(())
            }
            _ => self.hear(client, message).await,
        }
    }

    /// A message of a peer: one that asks for it gets a reply in its thread.
    async fn hear(&mut self, client: &Client, message: &Message) -> anyhow::Result<()> {
        let words = Words {
            from: message.from.to_string(),
            to: message.to.clone(),
            body: message.body.clone(),
            in_reply_to: message.in_reply_to,
        };
        self.ledger.heard(&self.name, message.id, words);
        // What came with other words than it was sent with is for the check to tell.
        let mut parts = message.body.splitn(3, ' ');
        let tag = parts.next().unwrap_or_default();
        let depth = parts.next().and_then(|depth| depth.parse::<u32>().ok());
        let Some(depth) = depth.and_then(|depth| depth.checked_sub(1)) else {
            return Ok(());
        };
        let reply = format!("{tag}>{}", self.name);
        let key = format!("re-{}", message.id).parse()?;
        let to = message.from.to_string();
        self.send(client, &reply, depth, to, Some(message.id), key)
            .await
    }

    async fn hear_event(&mut self, client: &Client, message: &Message) -> anyhow::Result<()> {
        let event: Event = serde_json::from_str(&message.body)?;
        let Some(question_id) = event.question_id else {
            return Ok(());
        };
        match event.event.as_str() {
            "question_asked" => {
                let query = Query {
                    asker: event.from,
                    target: self.name.clone(),
                    question: event.question,
                    options: event.options,
                    multi: event.multi,
                    expires: event.expires_at.is_some(),
                };
                // Some that expire are left to it.
                let is_left = query.expires && question_id.0 % 3 == 0;
                self.ledger.put(question_id, message.id, query);
                if !is_left {
                    self.answer(client, question_id).await?;
                }
            }
            "question_answered" => {
                let news = News {
                    message: message.id,
                    to: self.name.clone(),
                    question: event.question,
                    answer: event.answer,
                };
                self.ledger.ended(question_id, news);
            }
            "question_cancelled" => {
                self.ledger.withdrawn(question_id, message.id, &self.name);
            }
            _ => {}
        }
        Ok(())
    }

    /// Answers with a text that nobody else gives and that belongs to no other question.
    async fn answer(&self, client: &Client, question_id: QuestionId) -> anyhow::Result<()> {
        let subject = format!("{} answers {question_id}", self.name);
        let answer = Answer {
            question_id,
            answer: format!("{subject}: {}", phrase::about(&subject)),
            key: Some(format!("an-{question_id}").parse()?),
        };
        // It may have expired or been taken back by now.
        let allowed = &[ErrorCode::Conflict];
        if self.try_to(client, &answer, allowed).await?.is_some() {
            let text = &answer.answer;
            self.ledger.answered(question_id, &self.name, text);
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
                    message: format!("{tag} {}", phrase::about(&tag)),
                    delay_seconds: Some(self.rng.within(0..4)),
                    at_unix_timestamp: None,
                    key: Some(key),
                };
                // The limit of reminders may be reached.
                let allowed = &[ErrorCode::LimitReached];
                if self.try_to(client, &remind, allowed).await?.is_some() {
                    self.ledger.set(&self.name, &remind.message);
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
            body: format!("{tag} {depth} {}", phrase::about(tag)),
            in_reply_to,
            key: Some(key),
        };
        let sent = client.call_idempotent(&send, PATIENCE).await?;
        let words = Words {
            from: self.name.clone(),
            to: send.to,
            body: send.body,
            in_reply_to,
        };
        self.ledger.said(sent.message_id, words);
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
        let options = (0..self.rng.within(0..4)).map(|n| phrase::about(&format!("{tag}/{n}")));
        let ask = Ask {
            question: format!("{tag}? {}", phrase::about(tag)),
            options: options.collect(),
            multi: self.rng.percent(50),
            ttl_seconds: expires.then(|| 1 + u32::try_from(self.rng.within(0..4)).unwrap_or(0)),
            to: Some(to.clone()),
            wait: false,
            key: Some(key),
        };
        let asked = self
            .try_to(client, &ask, &[ErrorCode::LimitReached])
            .await?;
        let Some(asked) = asked else {
            return Ok(());
        };
        let query = Query {
            asker: self.name.clone(),
            target: to,
            question: ask.question,
            options: ask.options,
            multi: ask.multi,
            expires,
        };
        self.ledger.asked(asked.question_id, query);
        if self.rng.percent(10) {
            let cancel = CancelLooseEnd {
                row: LooseEndId::Question {
                    question_id: asked.question_id,
                },
                key: Some(format!("ca-{}", asked.question_id).parse()?),
            };
            // It may have been answered by now.
            let taken_back = self.try_to(client, &cancel, &[ErrorCode::Conflict]).await?;
            if taken_back.is_some() {
                self.ledger.cancelled(asked.question_id, &self.name);
            }
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
