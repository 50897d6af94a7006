//! Approvals: `pending`, `approve`, `deny`, `request-spawn`.

use hive_wire::{Timestamp, approval};
use serde::Serialize;

/// What waits: `pending`.
#[derive(Serialize)]
pub(in crate::cli) struct ApprovalList<'a> {
    approvals: Vec<Approval<'a>>,
}

#[derive(Serialize)]
struct Approval<'a> {
    id: String,
    kind: &'static str,
    agent: &'a str,
    requested_by: &'a str,
    hash: &'a str,
    diff: &'a str,
    expires_at: Option<Timestamp>,
    commit: Option<&'a str>,
    reason: &'a str,
    state: &'static str,
    requested_at: Timestamp,
    decided_at: Option<Timestamp>,
    carried_out_at: Option<Timestamp>,
    note: &'a str,
}

impl<'a> From<&'a approval::ApprovalList> for ApprovalList<'a> {
    fn from(list: &'a approval::ApprovalList) -> Self {
        let view = |row: &'a approval::ApprovalRow| Approval {
            id: row.approval_id.to_string(),
            kind: row.kind.as_str(),
            agent: row.agent.as_str(),
            requested_by: row.requested_by.as_str(),
            hash: &row.hash,
            diff: &row.diff,
            expires_at: row.expires_at,
            commit: row.commit.as_deref(),
            reason: &row.reason,
            state: row.state.as_str(),
            requested_at: row.requested_at,
            decided_at: row.decided_at,
            carried_out_at: row.carried_out_at,
            note: &row.note,
        };
        Self {
            approvals: list.approvals.iter().map(view).collect(),
        }
    }
}

/// How an approval stands after a decision: `approve`, `deny`.
#[derive(Serialize)]
pub(in crate::cli) struct Decided<'a> {
    id: String,
    agent: &'a str,
    state: &'static str,
    note: &'a str,
}

impl<'a> From<&'a approval::Decided> for Decided<'a> {
    fn from(decided: &'a approval::Decided) -> Self {
        Self {
            id: decided.approval_id.to_string(),
            agent: decided.agent.as_str(),
            state: decided.state.as_str(),
            note: &decided.note,
        }
    }
}

/// A request that waits now: `request-spawn`.
#[derive(Serialize)]
pub(in crate::cli) struct Requested<'a> {
    id: String,
    hash: &'a str,
    expires_at: Timestamp,
}

impl<'a> From<&'a approval::ApprovalRequested> for Requested<'a> {
    fn from(requested: &'a approval::ApprovalRequested) -> Self {
        Self {
            id: requested.approval_id.to_string(),
            hash: &requested.hash,
            expires_at: requested.expires_at,
        }
    }
}
