//! The commands of the operator's admin socket: everything the CLI does.

mod grants;
mod harness;
mod lifecycle;
mod spending;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use grants::{
    CancelAnySchedule, PermissionList, PermissionRow, SetPermissions, ShowPermissions,
    ShowSchedules,
};
pub use harness::{
    AgentSnapshot, ControlAgent, ControlOutcome, ControlState, DayTotal, GetAgentState, Lift,
    Lifted, Link, OneTimeLink, TotalsPage, TurnPage, TurnRow, TurnTotals, Turns,
};
pub use lifecycle::{
    AllStopped, Defaults, Destroy, Destroyed, Kill, Output, ReadOutput, Rebuild, Restart,
    RuntimeState, RuntimeStates, Spawn, Start, StopAll, StopFailure, TryRuntimes, UpdateAll,
    Updated,
};
pub use spending::{
    BudgetState, DaySpend, Pause, PauseCause, PauseRow, Paused, Resume, Spend, SpendPage,
};

pub use crate::approval::{
    ApprovalKind, ApprovalList, ApprovalRequested, ApprovalRow, ApprovalState, Approve, Decided,
    Deny, Pending, RequestSpawn, RequestSpawnAsOperator,
};
use crate::{
    AgentName, MessageId, QuestionId, SendKey, SenderLabel, Timestamp,
    agent::{self, is_zero},
    command::commands,
};

commands! {
    /// Every command of the admin socket.
    HostRequest {
        "info" => Info -> HiveInfo,
        "spawn" => Spawn -> AgentRow,
        "destroy" => Destroy -> Destroyed,
        "kill" => Kill -> AgentRow,
        "start" => Start -> AgentRow,
        "restart" => Restart -> AgentRow,
        "rebuild" => Rebuild -> AgentRow,
        "stop_all" => StopAll -> AllStopped,
        "runtimes" => TryRuntimes -> RuntimeStates,
        "output" => ReadOutput -> Output,
        "list" => List -> Agents,
        "send" => SendAsOperator -> agent::Sent,
        "inbox" => Inbox -> agent::Messages,
        "ack_inbox" => AckInbox -> InboxAcked,
        "receipt" => LookUpReceipt -> agent::Receipt,
        "history" => History -> HistoryPage,
        "dead" => Dead -> DeadLetters,
        "redeliver" => Redeliver -> Settled,
        "discard" => Discard -> Settled,
        "questions" => Questions -> QuestionList,
        "answer" => AnswerAsOperator -> agent::Answered,
        "events" => Events -> EventPage,
        "control_agent" => ControlAgent -> ControlOutcome,
        "agent_state" => GetAgentState -> AgentSnapshot,
        "turns" => Turns -> TurnPage,
        "turn_totals" => TurnTotals -> TotalsPage,
        "lift" => Lift -> Lifted,
        "spend" => Spend -> SpendPage,
        "pause" => Pause -> Paused,
        "resume" => Resume -> Paused,
        "link" => Link -> OneTimeLink,
        "permissions" => ShowPermissions -> PermissionList,
        "set_permissions" => SetPermissions -> PermissionRow,
        "schedules" => ShowSchedules -> agent::Schedules,
        "cancel_schedule" => CancelAnySchedule -> agent::ScheduleRow,
        "request_spawn" => RequestSpawnAsOperator -> ApprovalRequested,
        "pending" => Pending -> ApprovalList,
        "approve" => Approve -> Decided,
        "deny" => Deny -> Decided,
        "update_all" => UpdateAll -> Updated,
    }
}

/// Asks what daemon this is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Info {}

/// What daemon this is and how it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiveInfo {
    /// The build's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// The hive's name, when it has one.
    pub hive: Option<String>,
    /// The name of the swarm it belongs to.
    pub swarm: Option<String>,
    /// The directory everything lies under.
    pub root: String,
    /// The address of the dashboard port.
    pub dashboard: String,
    /// The version of the SQLite library inside.
    pub sqlite: String,
    /// How many agents are registered.
    pub agents: u32,
    /// How many messages wait or are held, the operator's among them.
    pub undelivered: u32,
    /// How many dead letters wait for the operator.
    pub dead: u32,
    /// What a new agent gets on this machine.
    #[serde(default)]
    pub defaults: Defaults,
    /// Why the whole hive is paused, when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// What the hive has spent today, and may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_today: Option<BudgetState>,
}

/// Where an agent runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// The best one that works on this machine.
    #[default]
    Auto,
    /// Nowhere that the hive knows: it gets a socket and an inbox, and runs elsewhere.
    None,
    /// A plain child process, without isolation.
    Process,
    /// Bubblewrap.
    Bwrap,
    /// systemd-nspawn.
    Nspawn,
    /// Podman.
    Podman,
    /// A NixOS container.
    Nixos,
}

impl Runtime {
    /// Every runtime, in the order in which help texts list them.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::None,
        Self::Process,
        Self::Bwrap,
        Self::Nspawn,
        Self::Podman,
        Self::Nixos,
    ];

    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Process => "process",
            Self::Bwrap => "bwrap",
            Self::Nspawn => "nspawn",
            Self::Podman => "podman",
            Self::Nixos => "nixos",
        }
    }

    /// The runtime of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|runtime| runtime.as_str() == name)
    }
}

/// What an agent reaches of the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// `gateway` where the runtime isolates, else `host`.
    #[default]
    Auto,
    /// The model, and the world through the host's egress proxy.
    Gateway,
    /// The model alone.
    None,
    /// Whatever the host reaches, its own services included.
    Host,
}

impl Network {
    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gateway => "gateway",
            Self::None => "none",
            Self::Host => "host",
        }
    }

    /// This one, or another where it leaves the choice open.
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Auto => other,
            chosen => chosen,
        }
    }

    /// What it comes to in a runtime.
    pub fn in_runtime(self, runtime: Runtime) -> Self {
        match (self, runtime) {
            // A plain process is on the host's network whatever it is told.
            (_, Runtime::Process | Runtime::None) => Self::Host,
            (Self::Auto, _) => Self::Gateway,
            (chosen, _) => chosen,
        }
    }
}

/// Where an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It runs elsewhere; the hive only keeps its inbox.
    External,
    /// It is being started, or its harness has not connected yet.
    Starting,
    /// Its harness waits for mail.
    Idle,
    /// A turn runs.
    Thinking,
    /// Its session is being compacted.
    Compacting,
    /// The model's service refuses for now; it waits.
    RateLimited,
    /// It waits for somebody to log in.
    NeedsLogin,
    /// The operator put it to rest.
    Paused,
    /// It does not run.
    Stopped,
    /// It does not run, and not because somebody wanted that.
    Failed,
}

impl AgentState {
    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Thinking => "thinking",
            Self::Compacting => "compacting",
            Self::RateLimited => "rate_limited",
            Self::NeedsLogin => "needs_login",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// An agent as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRow {
    /// Its name.
    pub name: AgentName,
    /// Where it stands.
    pub state: AgentState,
    /// What it says of itself.
    pub status: String,
    /// Where it runs.
    pub runtime: Runtime,
    /// What it reaches of the network; none for one that runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Which engine it runs; empty for one that runs elsewhere.
    pub engine: String,
    /// Which model it uses; empty for one that runs elsewhere.
    pub model: String,
    /// Its parent in the tree.
    pub parent: Option<AgentName>,
    /// Messages that wait in its inbox.
    pub unread: u32,
    /// Messages that its open turn holds.
    pub inflight: u32,
    /// The port of its page.
    pub port: u16,
    /// Its name in the world: `name@domain` when the hive has a domain.
    pub address: String,
    /// Where its socket lies.
    pub socket: String,
    /// When it was first registered.
    pub created_at: Timestamp,
    /// The process that runs it, when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// What the operator should know: why it failed, or why it is where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Whether it was made with another revision of the hive: a rebuild brings it up to date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// How often the host started it again by itself since somebody last asked for a start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// When it last did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<Timestamp>,
    /// Links on its card and its page, as it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<DashboardLink>,
}

/// A link on an agent's card and page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DashboardLink {
    /// What it says.
    pub label: String,
    /// Where it leads: an http(s) address.
    pub url: String,
    /// A sign before it; may be empty.
    pub icon: String,
}

/// Lists the agents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct List {}

/// The agents, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    /// One row each.
    pub agents: Vec<AgentRow>,
    /// Whether a rehearsed model answers instead of a real one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rehearsed: bool,
}

/// Sends a message as the operator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SendAsOperator {
    /// An agent's name.
    pub to: String,
    /// What to say.
    pub body: String,
    /// The message that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<MessageId>,
    /// The same key within a day is one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Shows the operator's mail without consuming it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Inbox {
    /// Only messages after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<MessageId>,
}

/// Marks messages of the operator's inbox as dealt with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AckInbox {
    /// Which ones.
    pub ids: Vec<MessageId>,
}

/// They are dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxAcked {
    /// How many were waiting until now.
    pub acked: u32,
}

/// Asks what became of any message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LookUpReceipt {
    /// The message.
    pub message_id: MessageId,
}

/// Reads the history of messages, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct History {
    /// Only those to or from this agent (or `operator`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// Only those of the thread that this message belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageId>,
    /// Only those before this one: the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<MessageId>,
    /// At most so many; 50 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The messages, newest first.
    pub messages: Vec<HistoryRow>,
    /// Where the next page begins, when there is one.
    pub next: Option<MessageId>,
}

/// A message with what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRow {
    /// Its receipt.
    #[serde(flatten)]
    pub receipt: agent::Receipt,
    /// What was said.
    pub body: String,
    /// The message it answers.
    pub in_reply_to: Option<MessageId>,
}

/// Lists the dead letters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Dead {
    /// Only those after this one: the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<MessageId>,
}

/// The dead letters, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetters {
    /// One row each, as many as fit into a line.
    pub messages: Vec<HistoryRow>,
    /// Where the next page begins, when there is one.
    pub next: Option<MessageId>,
}

/// Puts a dead letter back into its inbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Redeliver {
    /// Which one.
    pub message_id: MessageId,
}

/// Throws a dead letter away.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Discard {
    /// Which one.
    pub message_id: MessageId,
}

/// The dead letter is dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Where it stands now.
    pub state: agent::MessageState,
}

/// Lists questions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Questions {
    /// Also those that are answered, expired or cancelled.
    #[serde(default)]
    pub all: bool,
    /// Only those that were put to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Questions, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionList {
    /// One row each, as many as fit into a line.
    pub questions: Vec<QuestionRow>,
    /// True when there are more: of those that wait later ones, which show once some of these are
    /// answered; of all of them, earlier ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionRow {
    /// Its id.
    pub question_id: QuestionId,
    /// Who asked.
    pub asker: SenderLabel,
    /// Who is to answer.
    pub target: String,
    /// The question.
    pub question: String,
    /// Suggested answers.
    pub options: Vec<String>,
    /// Whether several of them may be chosen.
    pub multi: bool,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The answer, `[expired]` or `[cancelled by …]`.
    pub answer: Option<String>,
    /// When it was answered.
    pub answered_at: Option<Timestamp>,
}

/// Answers a question that was put to the operator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnswerAsOperator {
    /// The question.
    pub question_id: QuestionId,
    /// The answer.
    pub answer: String,
}

/// Reads the event log, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Events {
    /// Only events after this position; without one, the newest `limit` events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<EventPosition>,
    /// At most so many; 100 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How long to wait for the first event; capped at [`agent::MAX_WAIT_SECONDS`].
    #[serde(default)]
    pub wait_seconds: u32,
    /// Only events about this agent (or `operator`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// A place in the event log. Positions of different epochs cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPosition {
    /// Which log it is; a new one begins when the file is made anew.
    pub epoch: i64,
    /// The event's number in it.
    pub seq: i64,
}

/// A page of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<EventRow>,
    /// Where the next page begins.
    pub next: EventPosition,
    /// True when events between the asked position and this page are gone.
    pub gap: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventRow {
    /// Its number.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// The agent (or `operator`) it is about.
    pub about: String,
    /// What happened, such as `message_stored`.
    pub kind: String,
    /// The particulars.
    pub data: serde_json::Value,
}
