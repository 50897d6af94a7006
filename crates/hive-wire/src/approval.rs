//! What waits for the operator's decision: a new agent, or a commit that changes one.
//!
//! A request is pinned to exact content when it is made. Whoever decides says which content they
//! looked at by its hash, so that nothing else is ever carried out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentName, ApprovalId, SendKey, SenderLabel, Timestamp, host::Runtime};

/// The longest reason or note of a request or a decision, in bytes.
pub const MAX_NOTE: usize = 4 * 1024;
/// The longest `agent.toml`, in bytes.
pub const MAX_AGENT_CONFIG: usize = 64 * 1024;
/// The longest name of a commit: a branch, a tag or a hash, in bytes.
pub const MAX_COMMIT_REF: usize = 200;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A new agent.
    Spawn,
    /// A commit of an agent's configuration.
    Apply,
}

impl ApprovalKind {
    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Apply => "apply",
        }
    }
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It waits.
    Pending,
    /// The operator said yes.
    Approved,
    /// The operator said no.
    Denied,
    /// It could not be carried out; the note says why.
    Failed,
    /// Its requester took it back.
    Cancelled,
    /// Nobody decided in time.
    Expired,
}

impl ApprovalState {
    /// Its name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// Asks for a new agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestSpawn {
    /// Its name. A text, so that the refusal of a bad one can say what is wrong with it.
    pub name: String,
    /// Its place in the tree: under the caller, or for the operator a root, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentName>,
    /// Its whole `agent.toml`; at most [`MAX_AGENT_CONFIG`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Its model, for one without `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its engine, for one without `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Where it runs, for one without `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Why; shown to the operator as the requester's own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same key from the same agent within a day is one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// Asks for a new agent in the operator's name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestSpawnAsOperator(pub RequestSpawn);

/// Asks for a commit of an agent's proposed configuration to be applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestApplyCommit {
    /// The agent. A text, so that the refusal of a bad one can say what is wrong with it.
    pub agent: String,
    /// A commit's whole hash, or the name of a branch; it is resolved now and never again.
    pub commit_ref: String,
    /// Why; shown to the operator as the requester's own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same key from the same agent within a day is one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SendKey>,
}

/// The request waits for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The commit that the request is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The hash of what would be applied.
    pub hash: String,
    /// When it falls out.
    pub expires_at: Timestamp,
}

/// Lists approvals.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Pending {
    /// Also those that are settled, newest first.
    #[serde(default)]
    pub all: bool,
}

/// Approvals: those that wait, oldest first, or all of them, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalList {
    /// One row each, as many as fit into a line.
    pub approvals: Vec<ApprovalRow>,
    /// True when there are more: they show once some of these are settled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// An approval as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRow {
    /// Its id.
    pub approval_id: ApprovalId,
    /// What is asked for.
    pub kind: ApprovalKind,
    /// The agent it is about.
    pub agent: AgentName,
    /// Who asks.
    pub requested_by: SenderLabel,
    /// The commit that it is pinned to.
    pub commit: Option<String>,
    /// The hash of what would be applied: a decision that names it holds for that content only.
    pub hash: String,
    /// What would change.
    pub diff: String,
    /// Why, in the requester's words.
    pub reason: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// When it falls out.
    pub expires_at: Option<Timestamp>,
    /// When it was decided.
    pub decided_at: Option<Timestamp>,
    /// When what was approved had been carried out.
    pub carried_out_at: Option<Timestamp>,
    /// What the decider said, or why it failed.
    pub note: String,
}

/// Says yes to an approval and carries it out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Approve {
    /// Which one.
    pub approval_id: ApprovalId,
    /// The hash of what was looked at; it fails as `conflict` when that has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What to tell the requester.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Says no to an approval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deny {
    /// Which one.
    pub approval_id: ApprovalId,
    /// Why not; the requester is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// How an approval stands after a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Which one.
    pub approval_id: ApprovalId,
    /// The agent it is about.
    pub agent: AgentName,
    /// `approved`, `denied`, or `failed` when it could not be carried out.
    pub state: ApprovalState,
    /// What was said, or what went wrong.
    pub note: String,
}
