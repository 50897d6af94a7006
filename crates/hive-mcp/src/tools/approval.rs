//! What the tools that ask for an approval share.

use hive_wire::agent::ApprovalRequested;
use schemars::JsonSchema;
use serde::Serialize;

/// The request waits for the operator.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its id: the decision names it.
    approval_id: i64,
    /// The commit that the operator decides about, whatever is committed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The hash of exactly what would be carried out.
    hash: String,
    /// When it falls out if nobody decides.
    expires_at: String,
}

impl From<ApprovalRequested> for Reply {
    fn from(requested: ApprovalRequested) -> Self {
        Self {
            approval_id: requested.approval_id.0,
            commit: requested.commit,
            hash: requested.hash,
            expires_at: requested.expires_at.to_string(),
        }
    }
}
