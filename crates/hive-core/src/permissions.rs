//! What an agent may do (M1, M2, C14): pure rules over what the operator granted it.
//!
//! [`gate`] keeps the grants of all agents where every request passes; [`rate`] is how fast an
//! agent may change things. Whose children, questions and reminders are whose is not decided here
//! but where the row is at hand.

mod gate;
mod rate;

use std::collections::BTreeSet;

use hive_store::sqlite::Permissions;
use hive_wire::{
    AgentName, ErrorCode, Recipient, Timestamp, WireError,
    agent::{AgentRequest, Granted},
    grants::{Capability, Group, Groups},
    host::SetPermissions,
    text,
};

pub(crate) use gate::Gate;
pub(crate) use rate::Rate;

/// The groups that the root agent has besides everybody's, unless the operator says otherwise: it
/// manages the others.
const ROOT_GROUPS: [Group; 4] = [
    Group::Lifecycle,
    Group::Approvals,
    Group::Scheduling,
    Group::Diagnostics,
];
/// The most names on a list of recipients.
const MAX_RECIPIENTS: usize = 256;

/// What an agent was granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    groups: Groups,
    capabilities: BTreeSet<Capability>,
    /// Whom it may write to besides its parent and the operator; empty for everybody.
    recipients: BTreeSet<Recipient>,
    /// When the operator changed it; none for the defaults.
    changed_at: Option<Timestamp>,
    is_root: bool,
}

/// What a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: it is about the caller's own inbox and turns, and the harness lives on it.
    Nothing,
    /// A tool group.
    Group(Group),
    /// A capability.
    Capability(Capability),
}

/// What a command needs.
pub(crate) fn need(request: &AgentRequest) -> Need {
    match request {
        AgentRequest::Recv(_)
        | AgentRequest::Confirm(_)
        | AgentRequest::AckTurn(_)
        | AgentRequest::RequeueInflight(_)
        | AgentRequest::Status(_)
        | AgentRequest::Wake(_)
        // Background bash asks what became of its wakes, whatever the groups (B5).
        | AgentRequest::GetReceipt(_)
        | AgentRequest::PostTurnCounts(_)
        | AgentRequest::PostState(_)
        | AgentRequest::PostEvents(_)
        | AgentRequest::Control(_)
        | AgentRequest::GetPermissions(_) => Need::Nothing,
        AgentRequest::Send(_) | AgentRequest::Ask(_) | AgentRequest::Answer(_) => {
            Need::Group(Group::Messaging)
        }
        AgentRequest::GetLooseEnds(_)
        | AgentRequest::CancelLooseEnd(_)
        | AgentRequest::Remind(_) => Need::Group(Group::Inbox),
        AgentRequest::SetStatus(_) | AgentRequest::GetAgentMeta(_) | AgentRequest::ListPeers(_) => {
            Need::Group(Group::Meta)
        }
        AgentRequest::Kill(_)
        | AgentRequest::Start(_)
        | AgentRequest::Restart(_)
        | AgentRequest::ListAgents(_) => Need::Group(Group::Lifecycle),
        AgentRequest::RequestSpawn(_) | AgentRequest::RequestApplyCommit(_) => {
            Need::Group(Group::Approvals)
        }
        AgentRequest::Schedule(_)
        | AgentRequest::ListSchedules(_)
        | AgentRequest::CancelSchedule(_) => Need::Group(Group::Scheduling),
        AgentRequest::GetLogs(_) => Need::Group(Group::Diagnostics),
        AgentRequest::GetHostJournal(_) => Need::Capability(Capability::ReadHostJournal),
    }
}

/// Whether a caller with these grants may use this command at all.
///
/// # Errors
/// `denied`, with what it lacks and who can grant it.
pub(crate) fn check(
    agent: &AgentName,
    request: &AgentRequest,
    grants: &Grants,
) -> Result<(), WireError> {
    let command = request.name();
    match need(request) {
        Need::Nothing => Ok(()),
        Need::Group(group) if grants.groups.has(group) => Ok(()),
        Need::Group(group) => Err(lacks(
            &format!("`{command}` needs the tool group `{group}`, which you do not have"),
            &format!("hive-c0re permissions {agent} --grant {group}"),
        )),
        Need::Capability(capability) => grants.check_capability(agent, command, capability),
    }
}

fn lacks(what: &str, remedy: &str) -> WireError {
    WireError::new(ErrorCode::Denied, what).hint(format!(
        "do without it, or ask the operator, who alone can grant it: `{remedy}`"
    ))
}

impl Grants {
    /// What an agent has that the operator said nothing about.
    pub(crate) fn defaults(is_root: bool) -> Self {
        let more = ROOT_GROUPS.into_iter().filter(|_| is_root);
        Self {
            groups: Groups::default().iter().chain(more).collect(),
            is_root,
            ..Self::default()
        }
    }

    /// What is on disk. A word that this build does not know grants nothing; a recipient that it
    /// cannot read stays a restriction.
    pub(crate) fn stored(is_root: bool, stored: &Permissions, changed_at: Timestamp) -> Self {
        let mut recipients: BTreeSet<Recipient> = stored
            .recipients
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        if recipients.is_empty() && !stored.recipients.is_empty() {
            recipients.insert(Recipient::Operator);
        }
        Self {
            groups: stored
                .groups
                .iter()
                .filter_map(|w| w.parse().ok())
                .collect(),
            capabilities: stored
                .capabilities
                .iter()
                .filter_map(|word| word.parse().ok())
                .collect(),
            recipients,
            changed_at: Some(changed_at),
            is_root,
        }
    }

    /// As it goes to disk.
    pub(crate) fn to_store(&self) -> Permissions {
        Permissions {
            groups: self.groups.iter().map(|g| g.to_string()).collect(),
            capabilities: self.capabilities.iter().map(|c| c.to_string()).collect(),
            recipients: self
                .recipients
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect(),
        }
    }

    /// As it is shown.
    pub(crate) fn shown(&self) -> Granted {
        Granted {
            groups: self.groups.iter().collect(),
            capabilities: self.capabilities.iter().copied().collect(),
            recipients: self.recipients.iter().cloned().collect(),
            is_root: self.is_root,
        }
    }

    /// When the operator changed it; none for the defaults.
    pub(crate) fn changed_at(&self) -> Option<Timestamp> {
        self.changed_at
    }

    /// Its tool groups.
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Whether it is the root agent's.
    pub(crate) fn is_root(&self) -> bool {
        self.is_root
    }

    /// The same after a change by the operator.
    ///
    /// # Errors
    /// `bad_request` for something that is given and taken away at once, or too many recipients.
    pub(crate) fn changed(
        &self,
        change: &SetPermissions,
        now: Timestamp,
    ) -> Result<Self, WireError> {
        let twice = |word: &str| {
            WireError::new(
                ErrorCode::BadRequest,
                format!("`{word}` is granted and revoked at once"),
            )
            .hint("name it once")
        };
        if let Some(group) = change.grant.iter().find(|g| change.revoke.contains(g)) {
            return Err(twice(group.as_str()));
        }
        let both = |c: &&Capability| change.revoke_capabilities.contains(c);
        if let Some(capability) = change.grant_capabilities.iter().find(both) {
            return Err(twice(capability.as_str()));
        }
        let mut grants = if change.reset {
            Self::defaults(self.is_root)
        } else {
            self.clone()
        };
        grants.groups = grants
            .groups
            .iter()
            .filter(|group| !change.revoke.contains(group))
            .chain(change.grant.iter().copied())
            .collect();
        grants.capabilities.extend(&change.grant_capabilities);
        grants
            .capabilities
            .retain(|capability| !change.revoke_capabilities.contains(capability));
        if let Some(recipients) = &change.recipients {
            if recipients.len() > MAX_RECIPIENTS {
                return Err(WireError::new(
                    ErrorCode::BadRequest,
                    format!("a list of recipients has at most {MAX_RECIPIENTS} names"),
                ));
            }
            grants.recipients = recipients.iter().cloned().collect();
        }
        grants.changed_at = Some(now);
        Ok(grants)
    }

    /// Whether an agent with these grants and this parent may write to `to` (M2).
    ///
    /// # Errors
    /// `denied`, with whom it may write to.
    pub(crate) fn check_recipient(
        &self,
        agent: &AgentName,
        parent: Option<&AgentName>,
        to: &Recipient,
    ) -> Result<(), WireError> {
        let is_always_reachable = match to {
            Recipient::Operator => true,
            Recipient::Agent(name) => name == agent || Some(name) == parent,
        };
        if is_always_reachable || self.recipients.is_empty() || self.recipients.contains(to) {
            return Ok(());
        }
        let names: Vec<&str> = self.recipients.iter().map(Recipient::as_str).collect();
        let names = text::shorten(&names.join(", "), 300);
        Err(WireError::new(
            ErrorCode::Denied,
            format!("you may not write to `{}`", to.as_str()),
        )
        .hint(format!(
            "you may write to your parent, the operator and: {names}; the operator can change that"
        )))
    }

    /// Whether an agent with these grants has a capability that `command` needs.
    ///
    /// # Errors
    /// `denied`, with who can grant it.
    pub(crate) fn check_capability(
        &self,
        agent: &AgentName,
        command: &str,
        capability: Capability,
    ) -> Result<(), WireError> {
        if self.has(capability) {
            return Ok(());
        }
        Err(lacks(
            &format!("`{command}` needs the capability `{capability}`, which you do not have"),
            &format!("hive-c0re permissions {agent} --cap {capability}"),
        ))
    }

    /// Whether it has this capability.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

#[cfg(test)]
mod tests;
