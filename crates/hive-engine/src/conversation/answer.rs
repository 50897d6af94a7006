//! One request and its answer.

use std::time::Instant;

use hive_providers::{
    ApiError, Assembler, Block, ErrorKind, Message, Progress, Request, Role, StreamEvent,
};
use serde_json::Value;

use super::{Conversation, Turn};
use crate::{
    happening::{Happening, Notice, Speech, Whole},
    history, ids,
    session::SessionError,
};

/// A call as the model made it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
    /// The arguments as they came, when they make no sense.
    pub(super) bad_input: Option<String>,
}

/// An answer, as far as it came.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Asked>,
    pub(super) stop_reason: Option<String>,
}

/// What became of a request.
pub(super) enum Answer {
    Whole(Reply),
    Failed {
        error: Box<ApiError>,
        /// What was whole when it broke off.
        kept: Option<Reply>,
    },
    Interrupted,
}

/// How following a request ended.
pub(super) enum Ending {
    Whole,
    Failed(Box<ApiError>),
    Interrupted,
}

/// Who hears an answer while it comes.
#[derive(Clone, Copy)]
pub(super) enum Audience {
    /// Whoever listens to the turn.
    Listeners,
    /// Nobody: it is for the engine itself.
    Nobody,
}

impl Conversation {
    /// The request for what was said so far.
    pub(super) fn request(&self, messages: &[Message]) -> Request {
        let (info, _) = self.setup.models.find(&self.setup.model);
        Request {
            model: self.setup.model.clone(),
            system: self.setup.system.clone(),
            messages: history::normalise(messages),
            tools: self
                .setup
                .tools
                .iter()
                .map(|tool| tool.spec().clone())
                .collect(),
            max_tokens: info.max_output_tokens,
            thinking: self.setup.thinking,
        }
    }

    /// Asks the model and writes down what it says.
    pub(super) async fn ask(&mut self, turn: &mut Turn<'_>) -> Result<Answer, SessionError> {
        let request = self.request(&self.session.messages);
        turn.requests += 1;
        turn.notice(Notice::Requesting).await;
        let (assembler, ending) = self.follow(turn, &request, Audience::Listeners).await;
        let kept = self.keep(&assembler)?;
        Ok(match ending {
            Ending::Whole => Answer::Whole(kept.unwrap_or(Reply {
                stop_reason: assembler.stop_reason.clone(),
                ..Reply::default()
            })),
            Ending::Failed(error) => Answer::Failed { error, kept },
            Ending::Interrupted => Answer::Interrupted,
        })
    }

    /// Follows a request until its answer is whole, fails for good or is interrupted; what it cost
    /// is accounted for in each case.
    pub(super) async fn follow(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        audience: Audience,
    ) -> (Assembler, Ending) {
        let sent = Instant::now();
        let mut reply = self.client.ask(request);
        let mut assembler = Assembler::default();
        let ending = loop {
            // Dropping `next` abandons the request, which is what an interruption wants.
            let progress = tokio::select! {
                progress = reply.next() => progress,
                () = turn.cancel.cancelled() => break Ending::Interrupted,
                () = out_of_time(turn, &self.setup.limits) => {
                    let text = "Reached the time limit of the turn";
                    break Ending::Failed(Box::new(ApiError::local(ErrorKind::TimedOut, text)));
                }
            };
            match (progress, audience) {
                (Progress::Event(event), Audience::Listeners) => {
                    event_heard(turn, &mut assembler, event, sent).await;
                }
                (Progress::Event(event), Audience::Nobody) => {
                    assembler.push(&event);
                }
                (Progress::Limit(limit), _) => turn.notice(Notice::Limit(limit)).await,
                (
                    Progress::Retrying {
                        attempt,
                        max_retries,
                        delay,
                        error,
                    },
                    _,
                ) => {
                    assembler = Assembler::default();
                    turn.notice(Notice::Retry {
                        attempt,
                        max_retries,
                        delay,
                        error,
                    })
                    .await;
                }
                (Progress::Done, _) => break Ending::Whole,
                (Progress::Failed(error), _) => break Ending::Failed(Box::new(error)),
            }
        };
        self.account(turn, &assembler, sent);
        (assembler, ending)
    }

    /// Adds what an answer cost.
    fn account(&mut self, turn: &mut Turn<'_>, assembler: &Assembler, sent: Instant) {
        let ms = u64::try_from(sent.elapsed().as_millis()).unwrap_or(u64::MAX);
        turn.totals.api_ms += ms;
        self.session.totals.api_ms += ms;
        if assembler.usage.context_tokens() == 0 && assembler.usage.output_tokens == 0 {
            return;
        }
        let model = self.setup.model.clone();
        let cost = self.setup.models.find(&model).0.cost(&assembler.usage);
        turn.totals.add(&model, &assembler.usage, cost);
        self.session.totals.add(&model, &assembler.usage, cost);
        self.spent_usd += cost;
    }

    /// Writes down the blocks that are whole; `None` when there are none.
    fn keep(&mut self, assembler: &Assembler) -> Result<Option<Reply>, SessionError> {
        let blocks: Vec<Block> = assembler
            .done
            .iter()
            .map(|done| done.block.clone())
            .collect();
        if blocks.is_empty() {
            return Ok(None);
        }
        let calls = assembler
            .done
            .iter()
            .filter_map(|done| match &done.block {
                Block::ToolUse {
                    id, name, input, ..
                } => Some(Asked {
                    id: id.clone(),
                    name: name.clone(),
                    input: input.clone(),
                    bad_input: done.bad_input.clone(),
                }),
                _ => None,
            })
            .collect();
        let message = Message {
            role: Role::Assistant,
            content: blocks,
        };
        let text = message.text();
        let context = assembler.usage.context_tokens() + assembler.usage.output_tokens;
        let context = (context > 0).then_some(context);
        self.session.say(&ids::uuid(), message, context)?;
        Ok(Some(Reply {
            text,
            calls,
            stop_reason: assembler.stop_reason.clone(),
        }))
    }
}

/// Ends when the time limit passes; never without one.
async fn out_of_time(turn: &Turn<'_>, limits: &super::Limits) {
    match limits.max_time {
        Some(max) => tokio::time::sleep(max.saturating_sub(turn.began.elapsed())).await,
        None => std::future::pending().await,
    }
}

/// Tells a piece of an answer, and the block that it makes whole.
async fn event_heard(
    turn: &mut Turn<'_>,
    assembler: &mut Assembler,
    event: StreamEvent,
    sent: Instant,
) {
    if matches!(event, StreamEvent::Ping) {
        return;
    }
    let first = matches!(event, StreamEvent::MessageStart { .. }).then(|| sent.elapsed());
    if turn.ttft.is_none() {
        turn.ttft = first;
    }
    let completed = assembler.push(&event).cloned();
    if let Some(completed) = completed {
        // The whole block is told before the piece that ends it, as `claude` does.
        let whole = Whole {
            head: assembler.head.clone(),
            block: completed.block.clone(),
            request_id: None,
        };
        turn.emit(match completed.block {
            Block::ToolUse { .. } => Happening::ToolUse(whole),
            _ => Happening::TextDelta(Speech::Block(whole)),
        })
        .await;
    }
    turn.emit(Happening::TextDelta(Speech::Piece {
        event,
        message_id: assembler.head.id.clone(),
        ttft: first,
    }))
    .await;
}
