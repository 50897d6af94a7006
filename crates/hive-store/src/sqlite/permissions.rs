//! What the operator granted each agent. An agent without a row has the defaults.

use hive_wire::AgentName;
use rusqlite::{Connection, OptionalExtension, params};

use super::Tx;
use crate::Refusal;

/// Tool groups and capabilities, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Tool groups.
    pub groups: Vec<String>,
    /// Capabilities.
    pub capabilities: Vec<String>,
}

impl Tx<'_> {
    /// Replaces what an agent is granted.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn grant(&mut self, agent: &AgentName, granted: &Permissions) -> Result<(), Refusal> {
        let json = |names: &[String]| serde_json::to_string(names).expect("strings encode");
        self.conn.execute(
            "INSERT OR REPLACE INTO permissions VALUES (?1, ?2, ?3, ?4)",
            params![
                agent.as_str(),
                json(&granted.groups),
                json(&granted.capabilities),
                self.now.millis()
            ],
        )?;
        Ok(())
    }
}

pub(super) fn read(conn: &Connection, agent: &str) -> rusqlite::Result<Option<Permissions>> {
    conn.prepare_cached("SELECT groups, capabilities FROM permissions WHERE agent = ?1")?
        .query_row([agent], |row| {
            let names = |column| -> rusqlite::Result<Vec<String>> {
                Ok(serde_json::from_str(row.get_ref(column)?.as_str()?).unwrap_or_default())
            };
            Ok(Permissions {
                groups: names(0)?,
                capabilities: names(1)?,
            })
        })
        .optional()
}
