//! What happens in a turn, as it happens: five kinds of events, and notices beside them.

use std::time::Duration;

use hive_providers::{ApiError, Block, MessageHead, RateLimit, ResultContent, StreamEvent};
use serde_json::Value;

use crate::{permission::Why, session::Totals, stream_json::Denial, turn_end::TurnEnd};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Happening {
    /// The turn begins: what it runs with may be told.
    Begin,
    /// The model speaks or thinks.
    TextDelta(Speech),
    /// The model calls a tool.
    ToolUse(Whole),
    /// A tool answered.
    ToolResult(Box<Answered>),
    /// The history is being shortened.
    ContextCompression(Compression),
    /// The turn is over.
    Done(Box<TurnReport>),
    /// Something beside the conversation.
    Notice(Notice),
}

/// What the model says.
#[derive(Debug, Clone)]
pub enum Speech {
    /// A piece, as the provider sends it.
    Piece {
        /// The piece.
        event: StreamEvent,
        /// The provider's id of the answer.
        message_id: String,
        /// From the request to the first piece, on the first piece.
        ttft: Option<Duration>,
    },
    /// A block that is whole and calls no tool.
    Block(Whole),
}

/// A block that is whole.
#[derive(Debug, Clone)]
pub struct Whole {
    /// The head of the answer that it belongs to.
    pub head: MessageHead,
    /// The block.
    pub block: Block,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// The answer of a tool.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The call.
    pub tool_use_id: String,
    /// For the model.
    pub content: ResultContent,
    /// Whether it failed.
    pub is_error: bool,
    /// For programs.
    pub structured: Value,
    /// What was decided about the call, if it came to that.
    pub decision: Option<(bool, Why)>,
    /// The id of the event.
    pub uuid: String,
}

/// How the history is shortened.
#[derive(Debug, Clone)]
pub enum Compression {
    /// It begins.
    Started,
    /// It is done.
    Done {
        /// `manual` or `auto`.
        trigger: &'static str,
        /// The context before, in tokens.
        pre_tokens: u64,
        /// The context after, estimated.
        post_tokens: u64,
        /// How long it took.
        took: Duration,
        /// What replaces the history.
        summary: String,
    },
    /// It did not work.
    Failed(String),
}

/// Something beside the conversation.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A request is on its way.
    Requesting,
    /// A request failed and is tried again.
    Retry {
        /// From 1.
        attempt: u32,
        /// The most there will be.
        max_retries: u32,
        /// Until the next.
        delay: Duration,
        /// Why.
        error: ApiError,
    },
    /// What the provider says about limits.
    Limit(RateLimit),
    /// A call may not run.
    Denied {
        /// The call.
        denial: Denial,
        /// Why.
        why: Why,
        /// What the model is told.
        message: String,
    },
    /// A user message that we made: a nudge or a note of an interruption.
    Nudge {
        /// What it says.
        text: String,
        /// Whether it is marked as ours.
        is_synthetic: bool,
    },
    /// Something worth knowing.
    Info(String),
    /// The conversation starts anew.
    Reset,
    /// A local command answered.
    LocalOutput(String),
    /// A local command failed.
    LocalFailure {
        /// Such as `compact`.
        command: &'static str,
        /// What it says.
        text: String,
    },
}

/// All about a turn that is over.
#[derive(Debug, Clone)]
pub struct TurnReport {
    /// How it ended.
    pub end: TurnEnd,
    /// One, and one for every message that went back to the model.
    pub num_turns: u32,
    /// What this turn cost.
    pub turn: Totals,
    /// What the session cost.
    pub session: Totals,
    /// Calls that were not allowed.
    pub denials: Vec<Denial>,
    /// How long it took.
    pub took: Duration,
    /// To the first piece of an answer.
    pub ttft: Option<Duration>,
    /// The ids of the prompts it answered.
    pub prompts: Vec<String>,
    /// The local command that it was.
    pub local_command: Option<&'static str>,
}
