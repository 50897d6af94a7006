//! The conversation loop: prompt, answer, tools, answer, until there is nothing more to do.
//!
//! A turn always ends in one [`TurnReport`] and one line in the session's file, also when it is
//! cancelled at any point: every wait watches the token, and whatever was called is answered.

mod answer;
mod calls;
mod compact;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hive_providers::{ApiError, Block, Client, ErrorKind, Message, Models, Role, Thinking};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    consent::Consent,
    happening::{Happening, Notice, TurnReport},
    ids,
    permission::Policy,
    session::{Session, SessionError, Totals},
    stream_json::Denial,
    tool::{Context, Tool},
    turn_end::{EndReason, TurnEnd},
};

/// The part of the window that is kept free for an answer before a turn is refused.
const HEADROOM: u64 = 23_000;
/// How often an answer that was cut by its length limit is continued.
const MAX_CONTINUATIONS: u32 = 3;

const NUDGE_MAX_TOKENS: &str = "Output token limit hit. Resume directly — no apology, no recap of \
    what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining \
    work into smaller pieces.";
const NUDGE_REFUSAL: &str = "Your response above was stopped by a safety classifier — this is not a \
    tool or API error. The rest of it was withheld, and tool calls in it that had not finished did \
    not run. Do not produce that content again, even reworded.";
const NUDGE_EMPTY: &str = "[Your previous response had no visible output. Please continue and \
    produce a user-visible response.]";
const INTERRUPTED: &str = "[Request interrupted by user]";
const INTERRUPTED_TOOLS: &str = "[Request interrupted by user for tool use]";

/// Where the turn's events go.
pub type Events = mpsc::Sender<Happening>;

/// What a turn may cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Requests to the model.
    pub max_turns: Option<u32>,
    /// US dollars, of this process.
    pub max_budget_usd: Option<f64>,
    /// Time for one turn.
    pub max_time: Option<Duration>,
}

/// What stays the same between turns, and what control requests may change.
#[derive(Clone)]
pub struct Setup {
    /// The model's full name.
    pub model: String,
    /// The instructions.
    pub system: String,
    /// Whether it thinks first.
    pub thinking: Thinking,
    /// What is known about models.
    pub models: Models,
    /// The tools on offer.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Who decides about calls.
    pub policy: Policy,
    /// Who is asked.
    pub consent: Consent,
    /// What calls run in.
    pub context: Context,
    /// What a turn may cost.
    pub limits: Limits,
    /// How many calls run side by side.
    pub max_parallel: usize,
    /// Whether a conversation that is too long is shortened without being asked.
    pub auto_compact: bool,
    /// Whether the provider can be asked at all.
    pub has_key: bool,
}

/// A conversation with a model.
pub struct Conversation {
    /// What it runs with.
    pub setup: Setup,
    /// What was said.
    pub session: Session,
    client: Client,
    /// What this process spent.
    spent_usd: f64,
}

/// What a user says.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What.
    pub content: Vec<Block>,
    /// Its id, if the sender gave it one.
    pub uuid: Option<String>,
}

impl Prompt {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::text(text)],
            uuid: None,
        }
    }

    /// The text, if it is nothing but text.
    pub fn as_text(&self) -> Option<&str> {
        match self.content.as_slice() {
            [Block::Text { text, .. }] => Some(text),
            _ => None,
        }
    }
}

/// A turn in the making.
struct Turn<'a> {
    events: &'a Events,
    cancel: &'a CancellationToken,
    began: Instant,
    requests: u32,
    num_turns: u32,
    totals: Totals,
    denials: Vec<Denial>,
    ttft: Option<Duration>,
    continuations: u32,
    refusals: u32,
    empties: u32,
    /// Whether this turn was already shortened because it was too long.
    was_compacted: bool,
}

impl Turn<'_> {
    /// Hands an event on. Nobody listening any more means that the turn is being cancelled.
    async fn emit(&self, happening: Happening) {
        if self.events.send(happening).await.is_err() {
            self.cancel.cancel();
        }
    }

    async fn notice(&self, notice: Notice) {
        self.emit(Happening::Notice(notice)).await;
    }
}

/// What follows from an answer.
enum Next {
    GoOn,
    End(TurnEnd),
}

impl Conversation {
    /// A conversation that goes on from `session`.
    pub fn new(setup: Setup, session: Session, client: Client) -> Self {
        Self {
            setup,
            session,
            client,
            spent_usd: 0.0,
        }
    }

    /// The client that it asks.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Runs one turn to its end. The report is also the last event.
    pub async fn turn(
        &mut self,
        prompt: Prompt,
        events: &Events,
        cancel: &CancellationToken,
    ) -> Result<TurnReport, SessionError> {
        let mut turn = Turn::new(events, cancel);
        turn.emit(Happening::Begin).await;
        let uuid = prompt.uuid.clone().unwrap_or_else(ids::uuid);
        let message = Message {
            role: Role::User,
            content: prompt.content,
        };
        self.session.say(&uuid, message, None)?;
        let end = if self.setup.has_key {
            self.run(&mut turn).await?
        } else {
            let error = ApiError::local(ErrorKind::NoKey, "");
            TurnEnd::api(&error, &self.setup.model, "")
        };
        let prompts: Vec<String> = prompt.uuid.into_iter().collect();
        self.finish(turn, end, prompts, None).await
    }

    /// Writes down how the turn ended and tells it.
    async fn finish(
        &mut self,
        turn: Turn<'_>,
        end: TurnEnd,
        prompts: Vec<String>,
        local_command: Option<&'static str>,
    ) -> Result<TurnReport, SessionError> {
        let files = self.setup.context.ledger.snapshot();
        self.session.end_turn(end.reason, prompts.clone(), files)?;
        let report = TurnReport {
            end,
            num_turns: turn.num_turns,
            took: turn.began.elapsed(),
            turn: turn.totals.clone(),
            session: self.session.totals.clone(),
            denials: turn.denials.clone(),
            ttft: turn.ttft,
            prompts,
            local_command,
        };
        turn.emit(Happening::Done(Box::new(report.clone()))).await;
        Ok(report)
    }

    async fn run(&mut self, turn: &mut Turn<'_>) -> Result<TurnEnd, SessionError> {
        loop {
            if let Some(end) = self.limit_reached(turn) {
                return Ok(end);
            }
            let answer = self.ask(turn).await?;
            match self.react(turn, answer).await? {
                Next::GoOn => {}
                Next::End(end) => return Ok(end),
            }
        }
    }

    /// The limits that are looked at before each request.
    fn limit_reached(&self, turn: &Turn<'_>) -> Option<TurnEnd> {
        let limits = &self.setup.limits;
        if let Some(max) = limits.max_turns.filter(|max| turn.requests >= *max) {
            let mut end = TurnEnd::own(
                EndReason::ToolUse,
                "max_turns",
                "error_max_turns",
                format!("Reached maximum number of turns ({max})"),
            );
            end.stop_reason = Some("tool_use".into());
            return Some(end);
        }
        if let Some(max) = limits.max_budget_usd.filter(|max| self.spent_usd >= *max) {
            return Some(TurnEnd::own(
                EndReason::Error,
                "budget_exhausted",
                "error_max_budget_usd",
                format!("Reached maximum budget (${max})"),
            ));
        }
        if limits
            .max_time
            .is_some_and(|max| turn.began.elapsed() >= max)
        {
            return Some(TurnEnd::own(
                EndReason::Timeout,
                "timeout",
                "error_during_execution",
                "Reached the time limit of the turn",
            ));
        }
        let (info, _) = self.setup.models.find(&self.setup.model);
        let is_full = self.session.context_tokens + HEADROOM > info.context_window;
        (is_full && !self.setup.auto_compact && self.session.context_tokens > 0)
            .then(TurnEnd::blocked)
    }

    /// Decides what an answer leads to.
    async fn react(
        &mut self,
        turn: &mut Turn<'_>,
        answer: answer::Answer,
    ) -> Result<Next, SessionError> {
        let answer = match answer {
            answer::Answer::Whole(answer) => answer,
            answer::Answer::Failed { error, kept } => {
                return self.failed(turn, &error, kept).await;
            }
            answer::Answer::Interrupted => {
                let end = self
                    .interrupted(turn, INTERRUPTED, "aborted_streaming")
                    .await?;
                return Ok(Next::End(end));
            }
        };
        if !answer.calls.is_empty() {
            return self.run_calls(turn, answer.calls).await;
        }
        let nudge = match answer.stop_reason.as_deref() {
            Some("max_tokens") if turn.continuations < MAX_CONTINUATIONS => {
                turn.continuations += 1;
                Some(NUDGE_MAX_TOKENS)
            }
            Some("refusal") if turn.refusals == 0 => {
                turn.refusals += 1;
                let model = &self.setup.model;
                turn.notice(Notice::Info(format!(
                    "{model}'s safeguards stopped the response above · continuing once with that noted"
                )))
                .await;
                Some(NUDGE_REFUSAL)
            }
            Some("pause_turn") => return Ok(Next::GoOn),
            _ if answer.text.trim().is_empty() && turn.empties == 0 => {
                turn.empties += 1;
                Some(NUDGE_EMPTY)
            }
            _ => None,
        };
        if let Some(text) = nudge {
            self.nudge(turn, text, true).await?;
            return Ok(Next::GoOn);
        }
        let reason = match answer.stop_reason.as_deref() {
            Some("max_tokens") => EndReason::MaxTokens,
            Some("stop_sequence") => EndReason::StopSequence,
            Some("refusal") => EndReason::ContentFilter,
            Some("model_context_window_exceeded") => EndReason::ContextOverflow,
            _ => EndReason::EndTurn,
        };
        Ok(Next::End(TurnEnd::completed(
            reason,
            answer.text,
            answer.stop_reason,
        )))
    }

    /// A user message of our own.
    async fn nudge(
        &mut self,
        turn: &mut Turn<'_>,
        text: &str,
        is_synthetic: bool,
    ) -> Result<(), SessionError> {
        self.session.say(&ids::uuid(), Message::user(text), None)?;
        turn.num_turns += 1;
        turn.notice(Notice::Nudge {
            text: text.to_owned(),
            is_synthetic,
        })
        .await;
        Ok(())
    }

    async fn interrupted(
        &mut self,
        turn: &mut Turn<'_>,
        text: &str,
        terminal_reason: &'static str,
    ) -> Result<TurnEnd, SessionError> {
        self.nudge(turn, text, false).await?;
        Ok(TurnEnd::own(
            EndReason::UserInterrupt,
            terminal_reason,
            "error_during_execution",
            text,
        ))
    }

    async fn failed(
        &mut self,
        turn: &mut Turn<'_>,
        error: &ApiError,
        kept: Option<answer::Reply>,
    ) -> Result<Next, SessionError> {
        // What was whole when the answer broke off is used.
        if let Some(kept) = kept.filter(|kept| !kept.calls.is_empty()) {
            return self.run_calls(turn, kept.calls).await;
        }
        let is_too_long = error.kind == ErrorKind::PromptTooLong;
        if is_too_long && self.setup.auto_compact && !turn.was_compacted {
            turn.was_compacted = true;
            if self.shorten(turn, "auto", "").await?.is_ok() {
                return Ok(Next::GoOn);
            }
        }
        if let Some(limit) = error.limit.clone() {
            turn.notice(Notice::Limit(*limit)).await;
        }
        let end = TurnEnd::api(error, &self.setup.model, &self.client.authority());
        Ok(Next::End(end))
    }
}

impl<'a> Turn<'a> {
    fn new(events: &'a Events, cancel: &'a CancellationToken) -> Self {
        Self {
            events,
            cancel,
            began: Instant::now(),
            requests: 0,
            num_turns: 1,
            totals: Totals::default(),
            denials: Vec::new(),
            ttft: None,
            continuations: 0,
            refusals: 0,
            empties: 0,
            was_compacted: false,
        }
    }
}
