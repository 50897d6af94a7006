//! What the operator granted each agent. An agent without a row has the defaults.

use hive_wire::{AgentName, Timestamp};
use rusqlite::{Connection, params};

use super::{Tx, readers::parsed};
use crate::Refusal;

/// Tool groups, capabilities and recipients, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Tool groups.
    pub groups: Vec<String>,
    /// Capabilities.
    pub capabilities: Vec<String>,
    /// Whom it may write to besides its parent and the operator; empty for everybody.
    pub recipients: Vec<String>,
}

impl Tx<'_> {
    /// Replaces what an agent is granted.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn grant(&mut self, agent: &AgentName, granted: &Permissions) -> Result<(), Refusal> {
        let json = |names: &[String]| serde_json::to_string(names).expect("strings encode");
        self.conn()?.execute(
            "INSERT OR REPLACE INTO permissions \
             (agent, groups, capabilities, recipients, changed_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                agent.as_str(),
                json(&granted.groups),
                json(&granted.capabilities),
                json(&granted.recipients),
                self.now.millis()
            ],
        )?;
        Ok(())
    }

    /// Lets an agent have the defaults again.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn revoke_all(&mut self, agent: &AgentName) -> Result<(), Refusal> {
        self.conn()?
            .execute("DELETE FROM permissions WHERE agent = ?1", [agent.as_str()])?;
        Ok(())
    }
}

/// What every agent was granted that has a row, with the time of the last change.
pub(super) fn all(conn: &Connection) -> rusqlite::Result<Vec<(AgentName, Permissions, Timestamp)>> {
    let sql = "SELECT agent, groups, capabilities, recipients, changed_at FROM permissions";
    conn.prepare_cached(sql)?
        .query_map([], |row| {
            let names = |column| -> rusqlite::Result<Vec<String>> {
                let json = row.get_ref(column)?.as_str()?;
                serde_json::from_str(json).map_err(|error| {
                    rusqlite::Error::FromSqlConversionFailure(
                        column,
                        rusqlite::types::Type::Text,
                        error.into(),
                    )
                })
            };
            let granted = Permissions {
                groups: names(1)?,
                capabilities: names(2)?,
                recipients: names(3)?,
            };
            Ok((
                parsed(row, 0)?,
                granted,
                Timestamp::from_millis(row.get(4)?),
            ))
        })?
        .collect()
}
