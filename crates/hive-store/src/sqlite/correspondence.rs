//! The index of who took part in which message, filled behind the writer's back in batches.
//!
//! A row names many messages of one party, so that a batch writes a row for each party in it and
//! not for each message. What is not indexed yet is a short tail that readers scan.

use std::{borrow::Cow, collections::BTreeMap};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Tx;
use crate::Refusal;

/// The most messages of one row: as many as lie in a page of any size without a page of their own.
const PER_ROW: usize = 240;
/// How many bytes a message takes in a row.
const WIDTH: usize = size_of::<u32>();

/// Messages of one party, as a row holds them.
#[derive(Debug, PartialEq, Eq)]
struct Batch {
    first: i64,
    messages: Vec<i64>,
}

impl Batch {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let first: i64 = row.get(0)?;
        let distances = row.get_ref(1)?.as_blob()?.chunks_exact(WIDTH);
        let messages = distances
            .map(|bytes| {
                first + i64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            })
            .collect();
        Ok(Self { first, messages })
    }

    fn encode(&self) -> Vec<u8> {
        let distances = self.messages.iter().filter_map(|id| self.distance(*id));
        distances.flat_map(u32::to_le_bytes).collect()
    }

    fn distance(&self, message: i64) -> Option<u32> {
        u32::try_from(message - self.first).ok()
    }

    /// Takes in as many as there is room for; how many.
    fn take_in(&mut self, messages: &[i64]) -> usize {
        let room = PER_ROW.saturating_sub(self.messages.len());
        let fitting = messages
            .iter()
            .take(room)
            .take_while(|id| self.distance(**id).is_some());
        let fitting: Vec<i64> = fitting.copied().collect();
        self.messages.extend(&fitting);
        fitting.len()
    }
}

/// Up to `limit` indexed messages of a party before one of them, newest first.
pub(super) fn indexed(
    conn: &Connection,
    party: &str,
    before: i64,
    limit: u32,
) -> rusqlite::Result<Vec<i64>> {
    let mut statement = conn.prepare_cached(
        "SELECT first, messages FROM correspondence WHERE party = ?1 AND first < ?2 \
         ORDER BY first DESC",
    )?;
    let mut rows = statement.query(params![party, before])?;
    let mut found = Vec::new();
    while found.len() < limit as usize
        && let Some(row) = rows.next()?
    {
        let messages = Batch::from_row(row)?.messages.into_iter().rev();
        found.extend(messages.filter(|id| *id < before));
    }
    found.truncate(limit as usize);
    Ok(found)
}

impl Tx<'_> {
    /// Indexes up to `limit` messages; how many are left to do.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn index_correspondence(&mut self, limit: u32) -> Result<u64, Refusal> {
        let done: i64 = self
            .conn()?
            .prepare_cached("SELECT value FROM meta WHERE key = 'indexed_messages'")?
            .query_row([], |row| row.get(0))?;
        // From the table and not from the books: an id that was taken and undone may be given again
        // after a restart, and would then pass for indexed.
        let last = self.last_stored()?;
        let until = last.min(done.saturating_add(i64::from(limit)));
        if until <= done {
            return Ok(0);
        }
        for (party, messages) in self.by_party(done, until)? {
            self.append(&party, &messages)?;
        }
        self.conn()?
            .prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'indexed_messages'")?
            .execute([until])?;
        Ok(u64::try_from(last - until).unwrap_or(0))
    }

    /// The messages of each party after `done` and up to `until`, in their order.
    fn by_party(&self, done: i64, until: i64) -> rusqlite::Result<BTreeMap<String, Vec<i64>>> {
        let mut statement = self.conn()?.prepare_cached(
            "SELECT id, sender, recipient FROM messages WHERE id > ?1 AND id <= ?2 ORDER BY id",
        )?;
        let mut rows = statement.query(params![done, until])?;
        let mut parties: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            let (sender, recipient) = (text(row, 1)?, text(row, 2)?);
            // A message to oneself has one party.
            let second = (sender != recipient).then_some(recipient);
            for party in std::iter::once(sender).chain(second) {
                match parties.get_mut(&*party) {
                    Some(messages) => messages.push(id),
                    None => drop(parties.insert(party.into_owned(), vec![id])),
                }
            }
        }
        Ok(parties)
    }

    /// Adds messages that are newer than all that the party has.
    fn append(&self, party: &str, mut messages: &[i64]) -> rusqlite::Result<()> {
        let newest = self
            .conn()?
            .prepare_cached(
                "SELECT first, messages FROM correspondence WHERE party = ?1 \
                 ORDER BY first DESC LIMIT 1",
            )?
            .query_row([party], Batch::from_row)
            .optional()?;
        let mut batch = newest;
        while let Some(next) = messages.first() {
            let mut fitting = batch.take().unwrap_or_else(|| Batch {
                first: *next,
                messages: Vec::new(),
            });
            let taken = fitting.take_in(messages);
            if taken > 0 {
                self.write_batch(party, &fitting)?;
                messages = &messages[taken..];
            }
        }
        Ok(())
    }

    /// Takes messages, in ascending order, out of a party's rows; those that are not indexed are
    /// passed over.
    pub(super) fn forget_correspondence(
        &self,
        party: &str,
        mut messages: &[i64],
    ) -> rusqlite::Result<()> {
        while let Some(next) = messages.first() {
            let around = self
                .conn()?
                .prepare_cached(
                    "SELECT first, messages FROM correspondence WHERE party = ?1 AND first <= ?2 \
                     ORDER BY first DESC LIMIT 1",
                )?
                .query_row(params![party, next], Batch::from_row)
                .optional()?;
            let last = around.as_ref().and_then(|batch| batch.messages.last());
            let here = last.map_or(1, |last| messages.partition_point(|id| id <= last).max(1));
            let (gone, rest) = messages.split_at(here);
            if let Some(mut batch) = around {
                let before = batch.messages.len();
                batch.messages.retain(|id| gone.binary_search(id).is_err());
                if batch.messages.len() < before {
                    self.write_batch(party, &batch)?;
                }
            }
            messages = rest;
        }
        Ok(())
    }

    /// Writes a row anew, or removes one that names no message any more.
    fn write_batch(&self, party: &str, batch: &Batch) -> rusqlite::Result<()> {
        let written = if batch.messages.is_empty() {
            self.conn()?
                .prepare_cached("DELETE FROM correspondence WHERE party = ?1 AND first = ?2")?
                .execute(params![party, batch.first])
        } else {
            self.conn()?
                .prepare_cached("INSERT OR REPLACE INTO correspondence VALUES (?1, ?2, ?3)")?
                .execute(params![party, batch.first, batch.encode()])
        };
        written.map(|_| ())
    }
}

/// A column as text; whatever the disk made of one must not keep the others from being indexed.
fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<Cow<'r, str>> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_what_it_has_room_for() {
        let mut batch = Batch {
            first: 5,
            messages: vec![5],
        };
        let far = 5 + i64::from(u32::MAX);
        assert_eq!(
            batch.take_in(&[6, far, far + 1]),
            2,
            "too far from its first"
        );
        let many: Vec<i64> = (0..300).map(|n| far + n).collect();
        assert_eq!(batch.take_in(&many[1..]), 0);
        let mut full = Batch {
            first: 0,
            messages: (0..PER_ROW as i64 - 1).collect(),
        };
        assert_eq!(full.take_in(&[900, 901]), 1);
        assert_eq!(full.take_in(&[901]), 0);
    }
}
