//! What an agent is shown: tools behind a group or a capability that it has. The host enforces both
//! for every request; here they only shorten the list that the model reads.

use std::collections::BTreeSet;

use hive_wire::agent::Granted;

pub use hive_wire::grants::{Capability, Group, Groups};

/// What an agent must have been given to use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The group that the tool belongs to.
    Group(Group),
    /// A capability, whatever the groups.
    Capability(Capability),
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Group(group) => write!(f, "the tool group `{group}`"),
            Self::Capability(capability) => write!(f, "the capability `{capability}`"),
        }
    }
}

/// What an agent has been given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    groups: Groups,
    capabilities: BTreeSet<Capability>,
}

impl Grants {
    /// These groups, and no capability.
    pub fn new(groups: Groups) -> Self {
        Self {
            groups,
            capabilities: BTreeSet::new(),
        }
    }

    /// Everything there is.
    pub fn all() -> Self {
        Self {
            groups: Groups::all(),
            capabilities: Capability::ALL.iter().copied().collect(),
        }
    }

    /// The same with other groups.
    #[must_use]
    pub fn with_groups(self, groups: Groups) -> Self {
        Self { groups, ..self }
    }

    /// Whether they open this gate.
    pub fn open(&self, gate: Gate) -> bool {
        match gate {
            Gate::Group(group) => self.groups.has(group),
            Gate::Capability(capability) => self.capabilities.contains(&capability),
        }
    }
}

impl From<Granted> for Grants {
    fn from(granted: Granted) -> Self {
        Self {
            groups: granted.groups.into_iter().collect(),
            capabilities: granted.capabilities.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m1_a_gate_is_opened_by_what_it_names_alone() {
        let grants = Grants::from(Granted {
            groups: vec![Group::Diagnostics],
            capabilities: vec![Capability::ReadHostJournal],
            ..Granted::default()
        });
        for (gate, open) in [
            (Gate::Group(Group::Diagnostics), true),
            (Gate::Group(Group::Messaging), false),
            (Gate::Capability(Capability::ReadHostJournal), true),
            (Gate::Capability(Capability::QueryAgentState), false),
        ] {
            assert_eq!(grants.open(gate), open, "{gate}");
        }
        let grants = grants.with_groups(Groups::default());
        assert!(grants.open(Gate::Group(Group::Messaging)));
        assert!(!grants.open(Gate::Group(Group::Diagnostics)));
        assert!(grants.open(Gate::Capability(Capability::ReadHostJournal)));
    }
}
