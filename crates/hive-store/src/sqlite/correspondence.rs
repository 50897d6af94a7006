//! The index of who took part in which message, filled behind the writer's back in batches.
//!
//! A batch sorts its rows by party, so that each party's page is written once per batch and not
//! once per message. What is not indexed yet is a short tail that readers scan.

use rusqlite::params;

use super::Tx;
use crate::Refusal;

impl Tx<'_> {
    /// Indexes up to `limit` messages; how many are left to do.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn index_correspondence(&mut self, limit: u32) -> Result<u64, Refusal> {
        let done: i64 = self
            .conn
            .prepare_cached("SELECT value FROM meta WHERE key = 'indexed_messages'")?
            .query_row([], |row| row.get(0))?;
        // From the table and not from the books: an id that was taken and undone may be given again
        // after a restart, and would then pass for indexed.
        let last = self.last_stored()?;
        let until = last.min(done.saturating_add(i64::from(limit)));
        if until <= done {
            return Ok(0);
        }
        self.conn
            .prepare_cached(
                "INSERT OR IGNORE INTO correspondence (party, message) \
                 SELECT sender, id FROM messages WHERE id > ?1 AND id <= ?2 \
                 UNION SELECT recipient, id FROM messages WHERE id > ?1 AND id <= ?2 \
                 ORDER BY 1, 2",
            )?
            .execute(params![done, until])?;
        self.conn
            .prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'indexed_messages'")?
            .execute([until])?;
        Ok(u64::try_from(last - until).unwrap_or(0))
    }
}
