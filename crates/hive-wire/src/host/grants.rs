//! What the operator gives to agents and sees of their schedules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, Recipient, ScheduleId, Timestamp,
    grants::{Capability, Group},
    tools::Granted,
};

/// Shows what agents may do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ShowPermissions {
    /// Only this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
}

/// What agents may do, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionList {
    /// One row each.
    pub agents: Vec<PermissionRow>,
}

/// What one agent may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRow {
    /// Which agent.
    pub name: AgentName,
    /// What it has.
    #[serde(flatten)]
    pub granted: Granted,
    /// When the operator changed it; none while it has the defaults.
    pub changed_at: Option<Timestamp>,
}

/// Changes what an agent may do (C14). Host checks see it at once, its engine at the next turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetPermissions {
    /// Which agent.
    pub name: AgentName,
    /// Begins from the defaults instead of what it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    /// Tool groups to give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<Group>,
    /// Tool groups to take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoke: Vec<Group>,
    /// Capabilities to give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant_capabilities: Vec<Capability>,
    /// Capabilities to take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoke_capabilities: Vec<Capability>,
    /// Whom it may write to from now on, besides its parent and the operator; empty for everybody,
    /// unchanged unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients: Option<Vec<Recipient>>,
}

/// Lists scheduled prompts, the next one first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ShowSchedules {
    /// Only those of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
}

/// Deletes a schedule, whosever it is; its agent is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelAnySchedule {
    /// Which one.
    pub schedule_id: ScheduleId,
}
