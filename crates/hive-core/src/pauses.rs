//! Who begins no turn: pure rules over the pauses in force.
//!
//! The broker hands a paused agent no mail, whatever its harness asks for; the harness is told too,
//! so that it begins no turn of its own. A turn that runs when the pause comes ends as usual.

use std::{collections::BTreeMap, sync::Arc};

use hive_wire::{
    AgentName,
    host::{PauseCause, PauseRow},
};

/// The pauses in force. They are replaced as a whole, so a clone shares them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pauses {
    rows: Arc<BTreeMap<(Option<AgentName>, PauseCause), PauseRow>>,
}

impl Pauses {
    /// Those that are on disk.
    pub fn new(rows: impl IntoIterator<Item = PauseRow>) -> Self {
        let keyed = |row: PauseRow| ((row.agent.clone(), row.cause), row);
        Self {
            rows: Arc::new(rows.into_iter().map(keyed).collect()),
        }
    }

    /// Why this agent is paused, the hive's own pause first.
    pub fn of(&self, agent: &AgentName) -> Option<&PauseRow> {
        self.of_hive().or_else(|| {
            let mut rows = self.rows.values();
            rows.find(|row| row.agent.as_ref() == Some(agent))
        })
    }

    /// Why the whole hive is paused.
    pub fn of_hive(&self) -> Option<&PauseRow> {
        self.rows.values().find(|row| row.agent.is_none())
    }

    /// Every pause, the hive's own first.
    pub fn rows(&self) -> Vec<PauseRow> {
        self.rows.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use hive_wire::Timestamp;

    use super::*;

    #[test]
    fn c18_an_agent_is_paused_by_its_own_pauses_and_by_the_hives() {
        let row = |agent: Option<&str>, cause, reason: &str| PauseRow {
            agent: agent.map(|name| name.parse().unwrap()),
            cause,
            since: Timestamp::from_millis(0),
            reason: reason.to_owned(),
        };
        let ada: AgentName = "ada".parse().unwrap();
        let bob: AgentName = "bob".parse().unwrap();
        let own = Pauses::new([row(Some("ada"), PauseCause::Budget, "spent")]);
        assert_eq!(own.of(&ada).unwrap().reason, "spent");
        assert_eq!(own.of(&bob), None);
        assert_eq!(own.of_hive(), None);
        let hive = Pauses::new([
            row(Some("ada"), PauseCause::Budget, "spent"),
            row(None, PauseCause::Operator, "lunch"),
        ]);
        assert_eq!(hive.of(&ada).unwrap().reason, "lunch");
        assert_eq!(hive.of(&bob).unwrap().reason, "lunch");
        assert_eq!(hive.rows().len(), 2);
    }
}
