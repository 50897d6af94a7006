//! The commands of an agent's own socket. Who calls is who owns the socket: no command names its
//! caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApprovalId, MessageId, QuestionId, ReminderId, ReqId, SendKey, SenderLabel,
    Timestamp, TurnId, command::commands, text,
};

pub use crate::{
    approval::{ApprovalRequested, RequestApplyCommit, RequestSpawn},
    control::{Control, ControlAction, ControlDone, ControlRequest, ControlRequests},
    report::{
        AgentMeta, EventsPosted, GetAgentMeta, HarnessStatus, ListPeers, Peer, Peers, PostEvents,
        PostState, PostTurnCounts, PostedEvent, PostedKind, SetStatus, StatePosted, StatusSet,
        ToolCount, TurnCountsPosted, TurnKind, TurnState,
    },
    tools::{
        AgentList, CancelSchedule, ChildState, GetHostJournal, GetLogs, GetPermissions, Granted,
        HostJournal, JournalSource, Kill, ListAgents, ListSchedules, ListedAgent, Logs, Restart,
        Schedule, ScheduleRow, Scheduled, Schedules, Start,
    },
};

/// The longest body of a message, as JSON-encoded bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// The longest wait of one `recv`, in seconds.
pub const MAX_WAIT_SECONDS: u32 = 180;
/// The most messages one `recv` returns.
pub const MAX_BATCH: u32 = 32;

commands! {
    /// Every command of an agent's socket.
    AgentRequest {
        "send" => Send -> Sent,
        "recv" => Recv -> Messages,
        "confirm" => Confirm -> Confirmed,
        "ack_turn" => AckTurn -> TurnClosed,
        "requeue_inflight" => RequeueInflight -> TurnClosed,
        "status" => Status -> InboxStatus,
        "wake" => Wake -> Sent,
        "ask" => Ask -> Asked,
        "answer" => Answer -> Answered,
        "get_loose_ends" => GetLooseEnds -> LooseEnds,
        "cancel_loose_end" => CancelLooseEnd -> Cancelled,
        "remind" => Remind -> Reminded,
        "receipt" => GetReceipt -> Receipt,
        "set_status" => SetStatus -> StatusSet,
        "get_agent_meta" => GetAgentMeta -> AgentMeta,
        "list_peers" => ListPeers -> Peers,
        "post_turn_counts" => PostTurnCounts -> TurnCountsPosted,
        "post_state" => PostState -> StatePosted,
        "post_events" => PostEvents -> EventsPosted,
        "control" => Control -> ControlRequests,
        "get_permissions" => GetPermissions -> Granted,
        "kill" => Kill -> ChildState,
        "start" => Start -> ChildState,
        "restart" => Restart -> ChildState,
        "list_agents" => ListAgents -> AgentList,
        "schedule" => Schedule -> Scheduled,
        "list_schedules" => ListSchedules -> Schedules,
        "cancel_schedule" => CancelSchedule -> Cancelled,
        "get_logs" => GetLogs -> Logs,
        "get_host_journal" => GetHostJournal -> HostJournal,
        "request_spawn" => RequestSpawn -> ApprovalRequested,
        "request_apply_commit" => RequestApplyCommit -> ApprovalRequested,
    }
}

/// Stores a message for somebody.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Send {
    /// An agent's name, `operator`, or `<parent>`.
    pub to: String,
    /// What to say.
    pub body: String,
    /// The message that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<MessageId>,
    /// The same key from the same sender within a day is one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// The message is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id.
    pub message_id: MessageId,
    /// True when the key was known and no second message was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// Takes messages out of the caller's inbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Recv {
    /// How long to wait for the first message; capped at [`MAX_WAIT_SECONDS`].
    #[serde(default)]
    pub wait_seconds: u32,
    /// How many messages to take; 1 unless given, capped at [`MAX_BATCH`].
    #[serde(default = "one")]
    pub max: u32,
    /// The turn that holds them until it ends; without one they are acked at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The name of this receive: repeated, it returns the same batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub req: Option<ReqId>,
}

fn one() -> u32 {
    1
}

/// What a receive brought, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// The messages; none when the wait ran out.
    pub messages: Vec<Message>,
}

/// A message as its recipient sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its id; redelivered, it keeps it.
    pub id: MessageId,
    /// Who sent it, as stamped by the host.
    pub from: SenderLabel,
    /// Whose inbox it lay in.
    pub to: String,
    /// What was said.
    #[serde(serialize_with = "text::serialize_long")]
    pub body: String,
    /// The message it answers.
    pub in_reply_to: Option<MessageId>,
    /// When it was stored.
    pub sent_at: Timestamp,
    /// 1 the first time it is handed over, 2 the second …
    pub delivery: u32,
}

/// Says that a received batch reached the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Confirm {
    /// The turn that holds the batch.
    pub turn: TurnId,
    /// The receive that brought it.
    pub req: ReqId,
}

/// The batch is marked as handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// How many messages it holds.
    pub confirmed: u32,
}

/// Ends a turn that went well.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AckTurn {
    /// The turn.
    pub turn: TurnId,
    /// The messages it dealt with, besides those in confirmed batches.
    #[serde(default)]
    pub ids: Vec<MessageId>,
}

/// Ends a turn that did not go well: what it holds goes back to its place in the inbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequeueInflight {
    /// The turn.
    pub turn: TurnId,
    /// Why; decides whether it counts towards the dead letter.
    #[serde(default)]
    pub reason: RequeueReason,
}

/// Why a turn gave its messages back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequeueReason {
    /// The turn failed.
    #[default]
    Failed,
    /// The engine crashed.
    Crash,
    /// The model's service was not to be had.
    Unavailable,
    /// The model's service refused for now.
    RateLimited,
    /// The agent has to log in.
    Auth,
    /// The operator stopped the turn.
    Interrupted,
    /// The harness is stopping.
    Shutdown,
}

impl RequeueReason {
    /// Whether it counts towards the dead letter: only when the message itself may be the cause.
    pub fn counts(self) -> bool {
        matches!(self, Self::Failed | Self::Crash)
    }
}

/// How a turn stands after `ack_turn` or `requeue_inflight`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnClosed {
    /// What the call found.
    pub result: TurnResult,
    /// How many messages the turn acked.
    pub acked: u32,
    /// How many messages it gave back to the inbox.
    pub requeued: u32,
    /// How many messages it gave up on: they are dead letters now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dead: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What `ack_turn` or `requeue_inflight` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnResult {
    /// The turn was open and is acked now.
    Acked,
    /// The turn was open and has given its messages back now.
    Requeued,
    /// The turn had ended this way before; the counts are those of that time.
    Already,
    /// The turn had ended another way: a newer turn has, or had, its messages.
    Superseded,
    /// No such turn was ever opened here, or its record has passed its retention.
    Unknown,
}

/// Asks how the caller's inbox stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Status {}

/// How an inbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxStatus {
    /// Messages that wait to be received.
    pub unread: u32,
    /// Messages that the open turn holds.
    pub inflight: u32,
    /// The open turn.
    pub turn: Option<TurnId>,
}

/// Puts a message into the caller's own inbox under a label of its choice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wake {
    /// The label; no agent's name, nor `operator`, `system` or `self`.
    pub from: String,
    /// What to say.
    pub body: String,
    /// Kept in memory only: at most once, lost with the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
    /// The same key from the same agent within a day is one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Asks somebody a question; the answer comes as a message, or in the reply for one who waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    /// The question.
    pub question: String,
    /// Suggested answers.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether several of them may be chosen.
    #[serde(default)]
    pub multi: bool,
    /// After this time the answer is `[expired]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// Whom to ask; the operator unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The same key from the same agent within a day is one question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
    /// Whether the reply waits for the answer. It needs `ttl_seconds`; a caller that hangs up takes
    /// its question back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

/// The question is on disk and on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its id.
    pub question_id: QuestionId,
    /// Those who now wait for each other's answers in a circle, beginning with the caller; empty
    /// when nobody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
    /// The answer, for one who waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Answers a question that was put to the caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// The question.
    pub question_id: QuestionId,
    /// The answer.
    pub answer: String,
    /// The same key from the same agent within a day is one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// The answer is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The question it answers.
    pub question_id: QuestionId,
}

/// Lists what is open around an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GetLooseEnds {
    /// The agent to look at: the caller unless given, or one of its children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// What is open around an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LooseEnds {
    /// The rows, oldest first within a kind.
    pub loose_ends: Vec<LooseEnd>,
}

/// One thing that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LooseEnd {
    /// A question, asked by the agent or owed by it.
    Question {
        /// The question's id.
        question_id: QuestionId,
        /// Who asked.
        asker: SenderLabel,
        /// Who is to answer.
        target: String,
        /// The question.
        question: String,
        /// When it expires.
        expires_at: Option<Timestamp>,
    },
    /// A reminder that has not fired.
    Reminder {
        /// The reminder's id.
        reminder_id: ReminderId,
        /// What it will say.
        message: String,
        /// When.
        due_at: Timestamp,
    },
    /// A request that waits for the operator's decision; shown to the root agent alone.
    Approval {
        /// The request's id.
        approval_id: ApprovalId,
        /// What is asked for: `spawn` or `apply`.
        request: String,
        /// The agent it is about.
        agent: AgentName,
        /// Who asks for it.
        requested_by: String,
        /// When it falls out.
        expires_at: Option<Timestamp>,
    },
    /// Something that a companion of the agent says is open, such as a background command.
    Task {
        /// What it is called: the label of the wake that will tell of its end.
        label: String,
        /// What it is and how it stands.
        text: String,
        /// Since when.
        since: Timestamp,
    },
}

/// Takes back something of the caller's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelLooseEnd {
    /// What to take back.
    #[serde(flatten)]
    pub row: LooseEndId,
    /// The same key from the same agent within a day is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Something open that can be taken back, by its kind and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LooseEndId {
    /// A question the caller asked; its target is told.
    Question {
        /// The question.
        question_id: QuestionId,
    },
    /// A reminder the caller set.
    Reminder {
        /// The reminder.
        reminder_id: ReminderId,
    },
    /// A request that waits for the operator's decision; for the root agent alone.
    Approval {
        /// The request.
        approval_id: ApprovalId,
    },
}

/// It is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {}

/// Sets a reminder that arrives in the caller's own inbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Remind {
    /// What to be reminded of.
    pub message: String,
    /// In how many seconds; this or `at_unix_timestamp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u64>,
    /// At what time; this or `delay_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_unix_timestamp: Option<i64>,
    /// The same key from the same agent within a day is one reminder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// The reminder is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminded {
    /// Its id.
    pub reminder_id: ReminderId,
    /// When it fires.
    pub due_at: Timestamp,
}

/// Asks what became of a message that the caller sent or received.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetReceipt {
    /// The message.
    pub message_id: MessageId,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The message.
    pub message_id: MessageId,
    /// Who sent it.
    pub from: SenderLabel,
    /// Whose inbox it went to.
    pub to: String,
    /// Where it stands.
    pub state: MessageState,
    /// How often it was handed over.
    pub deliveries: u32,
    /// The turn that holds or ended it.
    pub turn: Option<TurnId>,
    /// When it was stored.
    pub sent_at: Timestamp,
    /// When it was acked.
    pub acked_at: Option<Timestamp>,
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// On disk, waiting in the inbox.
    Stored,
    /// Handed over to a turn that has not ended.
    Leased,
    /// Dealt with.
    Acked,
    /// Given up on after too many failed deliveries; waits for the operator.
    Dead,
    /// Thrown away by the operator.
    Discarded,
}
