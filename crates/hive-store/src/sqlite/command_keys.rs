//! Answers to commands that carry a key: asked again within a day, a command is not carried out
//! again. The answer is written in the group that carries the command out, so that both are there
//! or neither.

use hive_wire::{AgentName, SendKey};
use rusqlite::{OptionalExtension, params};

use super::{Tx, mail::KEY_LIFE};
use crate::Refusal;

impl Tx<'_> {
    /// What this agent was answered under this key, if it used it within a day. `request` names the
    /// command with all that it said.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] when the key was used for another request.
    pub fn answered_before(
        &self,
        agent: &AgentName,
        key: &SendKey,
        request: &str,
    ) -> Result<Option<String>, Refusal> {
        let found: Option<(String, String)> = self
            .conn()?
            .prepare_cached(
                "SELECT request, reply FROM command_keys \
                 WHERE agent = ?1 AND key = ?2 AND used_at >= ?3",
            )?
            .query_row(
                params![
                    agent.as_str(),
                    key.as_str(),
                    self.now.minus(KEY_LIFE).millis()
                ],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        match found {
            Some((known, _)) if known != request => Err(Refusal::Conflict(format!(
                "the key `{key}` was used for another request"
            ))),
            found => Ok(found.map(|(_, reply)| reply)),
        }
    }

    /// Remembers what this agent is answered under this key.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn remember_answer(
        &mut self,
        agent: &AgentName,
        key: &SendKey,
        request: &str,
        reply: &str,
    ) -> Result<(), Refusal> {
        self.conn()?
            .prepare_cached("INSERT OR REPLACE INTO command_keys VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                agent.as_str(),
                key.as_str(),
                request,
                reply,
                self.now.millis()
            ])?;
        Ok(())
    }
}
